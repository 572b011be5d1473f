// Memory that is allocated at once, on devices and on the host:
// cuda_semantics.md §1.3 and T13-T17.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "strata/tests/testing/devices/device_fixture.h"

namespace strata {
namespace {

constexpr std::size_t kHostWords = 512;
constexpr std::size_t kHostBytes = kHostWords * sizeof(std::uint64_t);
constexpr const char* kFreesDoNotWait = "this device frees without waiting";

DevicePtr AddressOf(const void* ptr) {
  return reinterpret_cast<DevicePtr>(ptr);
}

class MemoryConformanceTest : public DeviceTest {
 protected:
  std::size_t TotalBytes() {
    std::size_t free_bytes = 0;
    std::size_t total_bytes = 0;
    EXPECT_EQ(device().MemGetInfo(&free_bytes, &total_bytes), Status::kSuccess);
    return total_bytes;
  }

  bool FreesWait() {
    return sim() == nullptr || GetParam().options.sim_free == "sync";
  }

  // Copies `host` to device memory and from there to page-locked memory.
  void ExpectRoundTrip(const std::vector<std::uint64_t>& host) {
    const DevicePtr ptr = NewMemory(kHostBytes);
    const std::uint64_t* back = NewPinned(kHostWords);
    const Stream stream = NewStream();
    ASSERT_EQ(
        device().MemcpyAsync(ptr, AddressOf(host.data()), kHostBytes, stream),
        Status::kSuccess);
    ASSERT_EQ(device().MemcpyAsync(AddressOf(back), ptr, kHostBytes, stream),
              Status::kSuccess);
    ASSERT_EQ(device().StreamSynchronize(stream), Status::kSuccess);
    if (HasBytesOf(kHostBytes)) {
      EXPECT_TRUE(std::equal(host.begin(), host.end(), back));
    }
  }
};

INSTANTIATE_TEST_SUITE_P(Devices, MemoryConformanceTest,
                         ::testing::ValuesIn(AllDevices()), NameOfDevice);

TEST_P(MemoryConformanceTest, T13AddressesAreAligned) {
  for (const std::size_t bytes : {1u, 255u, 256u, 4097u, 1u << 20, 3u << 20}) {
    EXPECT_EQ(NewMemory(bytes) % 256, 0u) << bytes;
  }
}

TEST_P(MemoryConformanceTest, T13AllocationsDoNotOverlap) {
  std::vector<std::pair<DevicePtr, std::size_t>> ranges;
  for (std::size_t i = 0; i < 40; ++i) {
    const std::size_t bytes = i % 4 == 0 ? kBlockBytes + i : 1 + i * 300;
    ranges.emplace_back(NewMemory(bytes), bytes);
  }
  std::sort(ranges.begin(), ranges.end());
  for (std::size_t i = 1; i < ranges.size(); ++i) {
    EXPECT_LE(ranges[i - 1].first + ranges[i - 1].second, ranges[i].first);
  }
}

TEST_P(MemoryConformanceTest, T13NullCanBeFreed) {
  EXPECT_EQ(device().MemFree(0), Status::kSuccess);
}

TEST_P(MemoryConformanceTest, T13DoubleFreeIsRefused) {
  DevicePtr ptr = 0;
  ASSERT_EQ(device().MemAlloc(&ptr, kBlockBytes), Status::kSuccess);
  ASSERT_EQ(device().MemFree(ptr), Status::kSuccess);
  EXPECT_EQ(device().MemFree(ptr), Status::kInvalidValue);
}

TEST_P(MemoryConformanceTest, T13OnlyTheStartOfAnAllocationCanBeFreed) {
  EXPECT_EQ(device().MemFree(NewMemory(kBlockBytes) + 512),
            Status::kInvalidValue);
}

TEST_P(MemoryConformanceTest, T14MoreThanThereIsIsOutOfMemory) {
  DevicePtr ptr = 77;
  EXPECT_EQ(device().MemAlloc(&ptr, 2 * TotalBytes()),
            Status::kMemoryAllocation);
  EXPECT_EQ(ptr, 77u);
}

TEST_P(MemoryConformanceTest, T14TheNextCallKnowsNothingOfTheFailure) {
  DevicePtr ptr = 0;
  ASSERT_EQ(device().MemAlloc(&ptr, 2 * TotalBytes()),
            Status::kMemoryAllocation);
  const Stream stream = NewStream();
  EXPECT_EQ(device().StreamSynchronize(stream), Status::kSuccess);
  EXPECT_EQ(device().Synchronize(), Status::kSuccess);
}

TEST_P(MemoryConformanceTest, T15FreeBytesFollowAllocations) {
  const std::size_t before = FreeBytes();
  DevicePtr ptr = 0;
  ASSERT_EQ(device().MemAlloc(&ptr, kLargeBytes), Status::kSuccess);
  EXPECT_LE(FreeBytes(), before - kLargeBytes);
  ASSERT_EQ(device().MemFree(ptr), Status::kSuccess);
  ASSERT_EQ(device().Synchronize(), Status::kSuccess);
  ExpectFreeBytes(before);
}

TEST_P(MemoryConformanceTest, T16RegisteringTwiceIsRefused) {
  std::vector<std::uint64_t> host(kHostWords);
  ASSERT_EQ(device().HostRegister(host.data(), kHostBytes, 0),
            Status::kSuccess);
  EXPECT_EQ(device().HostRegister(host.data(), kHostBytes, 0),
            Status::kHostMemoryAlreadyRegistered);
  EXPECT_EQ(device().HostUnregister(host.data()), Status::kSuccess);
}

TEST_P(MemoryConformanceTest, T16UnregisteringUnknownMemoryIsRefused) {
  std::vector<std::uint64_t> host(kHostWords);
  EXPECT_EQ(device().HostUnregister(host.data()),
            Status::kHostMemoryNotRegistered);
}

// H9: only the registered start address is valid.
TEST_P(MemoryConformanceTest, T16UnregisteringTheMiddleIsRefused) {
  std::vector<std::uint64_t> host(kHostWords);
  ASSERT_EQ(device().HostRegister(host.data(), kHostBytes, 0),
            Status::kSuccess);
  EXPECT_NE(device().HostUnregister(host.data() + kHostWords / 2),
            Status::kSuccess);
  EXPECT_EQ(device().HostUnregister(host.data()), Status::kSuccess);
}

TEST_P(MemoryConformanceTest, T17NoBytesAreANullAddress) {
  DevicePtr ptr = 77;
  EXPECT_EQ(device().MemAlloc(&ptr, 0), Status::kSuccess);
  EXPECT_EQ(ptr, 0u);
}

TEST_P(MemoryConformanceTest, RuleH11ManagedMemoryOfNoBytesIsRefused) {
  STRATA_REQUIRE(device().caps().managed_memory, "no managed memory");
  DevicePtr ptr = 0;
  EXPECT_EQ(device().MallocManaged(&ptr, 0, kManagedGlobal),
            Status::kInvalidValue);
}

TEST_P(MemoryConformanceTest, RuleH11ManagedMemoryIsTheHostsAndTheDevices) {
  STRATA_REQUIRE(device().caps().managed_memory, "no managed memory");
  DevicePtr ptr = 0;
  ASSERT_EQ(device().MallocManaged(&ptr, kHostBytes, kManagedGlobal),
            Status::kSuccess);
  AtEnd([this, ptr] { EXPECT_EQ(device().MemFree(ptr), Status::kSuccess); });
  const Stream stream = NewStream();
  ASSERT_EQ(device().MemsetAsync(ptr, 0x11, kHostBytes, stream),
            Status::kSuccess);
  ASSERT_EQ(device().StreamSynchronize(stream), Status::kSuccess);
  const auto* words = reinterpret_cast<const std::uint64_t*>(ptr);
  EXPECT_EQ(words[kHostWords - 1], kFirst);
}

TEST_P(MemoryConformanceTest, RuleH12UnknownPointersAreUnregistered) {
  const std::vector<std::uint64_t> host(kHostWords);
  PointerInfo info{MemoryType::kDevice, 77};
  ASSERT_EQ(device().PointerAttributes(AddressOf(host.data()), &info),
            Status::kSuccess);
  EXPECT_EQ(info.type, MemoryType::kUnregistered);
}

TEST_P(MemoryConformanceTest, RuleH12PointersTellWhatTheyAre) {
  PointerInfo info;
  ASSERT_EQ(device().PointerAttributes(NewMemory(kBlockBytes) + 100, &info),
            Status::kSuccess);
  EXPECT_EQ(info.type, MemoryType::kDevice);
  EXPECT_EQ(info.device, 0);
  ASSERT_EQ(device().PointerAttributes(AddressOf(NewPinned(1)), &info),
            Status::kSuccess);
  EXPECT_EQ(info.type, MemoryType::kHost);
}

TEST_P(MemoryConformanceTest, RuleH13PeerAccessIsEnabledOnce) {
  STRATA_REQUIRE(HasPeers(), kNeedsPeers);
  // Peer access enabled by earlier tests of this process stays enabled on a
  // GPU.
  const Status first = device(0).EnablePeerAccess(1);
  EXPECT_TRUE(first == Status::kSuccess ||
              (sim() == nullptr && first == Status::kPeerAccessAlreadyEnabled));
  EXPECT_EQ(device(0).EnablePeerAccess(1), Status::kPeerAccessAlreadyEnabled);
}

TEST_P(MemoryConformanceTest, RuleH13PeerAccessLetsWorkReachThePeer) {
  STRATA_REQUIRE(HasPeers(), kNeedsPeers);
  const Status enabled = device(0).EnablePeerAccess(1);
  ASSERT_TRUE(enabled == Status::kSuccess ||
              enabled == Status::kPeerAccessAlreadyEnabled);
  const DevicePtr ptr = NewMemory(kBlockBytes, 1);
  const Stream stream = NewStream(kStreamNonBlocking, 0);
  Write(ptr, kBlockBytes, kFirst, stream);
  ASSERT_EQ(device(0).StreamSynchronize(stream), Status::kSuccess);
  ExpectWords(ptr, kBlockBytes, kFirst, 1);
}

TEST_P(MemoryConformanceTest, RuleH6RegisteredMemoryTravels) {
  std::vector<std::uint64_t> host(kHostWords, kFirst);
  ASSERT_EQ(device().HostRegister(host.data(), kHostBytes, 0),
            Status::kSuccess);
  ExpectRoundTrip(host);
  EXPECT_EQ(device().HostUnregister(host.data()), Status::kSuccess);
}

TEST_P(MemoryConformanceTest, RuleH6PageableMemoryTravels) {
  const std::vector<std::uint64_t> host(kHostWords, kSecond);
  ExpectRoundTrip(host);
}

// Writes after the call are not copied: staging has read the source.
TEST_P(MemoryConformanceTest, RuleH6PageableSourceIsReadAtTheCall) {
  STRATA_REQUIRE(sim() != nullptr, "a driver need not have read it");
  std::vector<std::uint64_t> host(kHostWords, kFirst);
  const DevicePtr ptr = NewMemory(kHostBytes);
  const Stream stream = NewStream();
  LongWork(stream);
  ASSERT_EQ(
      device().MemcpyAsync(ptr, AddressOf(host.data()), kHostBytes, stream),
      Status::kSuccess);
  std::fill(host.begin(), host.end(), kSecond);
  ExpectWords(ptr, kHostBytes, kFirst);
}

TEST_P(MemoryConformanceTest, RuleH6PageableTargetIsWrittenAtTheReturn) {
  std::vector<std::uint64_t> host(kHostWords, kSecond);
  const DevicePtr ptr = NewMemory(kHostBytes);
  const Stream stream = NewStream();
  LongWork(stream);
  Write(ptr, kHostBytes, kFirst, stream);
  ASSERT_EQ(
      device().MemcpyAsync(AddressOf(host.data()), ptr, kHostBytes, stream),
      Status::kSuccess);
  if (HasBytes()) {
    EXPECT_EQ(host.back(), kFirst);
  }
}

TEST_P(MemoryConformanceTest, RuleH6SmallWritesFollowTheStream) {
  constexpr std::size_t kBytes = 64;
  constexpr std::size_t kWords = kBytes / sizeof(std::uint64_t);
  std::uint64_t* source = NewPinned(kWords);
  std::fill(source, source + kWords, kFirst);
  const std::uint64_t* back = NewPinned(2 * kWords);
  const DevicePtr ptr = NewMemory(kHostBytes);
  const DevicePtr other = NewMemory(kHostBytes);
  const Stream stream = NewStream();
  LongWork(stream);
  const auto copy = [&](DevicePtr target, DevicePtr from) {
    EXPECT_EQ(device().MemcpyAsync(target, from, kBytes, stream),
              Status::kSuccess);
  };
  copy(ptr, AddressOf(source));
  copy(other, ptr);
  EXPECT_EQ(device().MemsetAsync(ptr + 8, 0x22, 16, stream), Status::kSuccess);
  copy(AddressOf(back), ptr);
  copy(AddressOf(back + kWords), other);
  ASSERT_EQ(device().StreamSynchronize(stream), Status::kSuccess);
  if (!HasBytesOf(kBytes)) return;
  const std::vector<std::uint64_t> filled = {kFirst, kSecond, kSecond, kFirst,
                                             kFirst, kFirst,  kFirst,  kFirst};
  EXPECT_EQ(std::vector<std::uint64_t>(back, back + kWords), filled);
  EXPECT_EQ(std::count(back + kWords, back + 2 * kWords, kFirst),
            std::ptrdiff_t{kWords});
}

TEST_P(MemoryConformanceTest, RuleH6CopiesBetweenDevicesNeedNoPeerAccess) {
  STRATA_REQUIRE(HasTwoDevices(), kNeedsTwoDevices);
  const DevicePtr source = NewMemory(kBlockBytes, 0);
  const DevicePtr target = NewMemory(kBlockBytes, 1);
  const Stream stream = NewStream(kStreamNonBlocking, 0);
  Write(source, kBlockBytes, kFirst, stream);
  ASSERT_EQ(device(0).MemcpyAsync(target, source, kBlockBytes, stream),
            Status::kSuccess);
  ASSERT_EQ(device(0).StreamSynchronize(stream), Status::kSuccess);
  ExpectWords(target, kBlockBytes, kFirst, 1);
}

TEST_P(MemoryConformanceTest, RuleH6FillsReachPartOfAnAllocation) {
  const DevicePtr ptr = NewMemory(kBlockBytes);
  const Stream stream = NewStream();
  Write(ptr, kBlockBytes, kFirst, stream);
  ASSERT_EQ(device().MemsetAsync(ptr + 4096, 0x22, 4096, stream),
            Status::kSuccess);
  ExpectWords(ptr, 4096, kFirst);
  ExpectWords(ptr + 4096, 4096, kSecond);
  ExpectWords(ptr + 8192, kBlockBytes - 8192, kFirst);
}

// H3, H5: a free waits for pending work, even for unrelated work. Callers must
// not rely on it: other devices need not wait.
TEST_P(MemoryConformanceTest, RuleH3FreeingWaitsForTheDevice) {
  STRATA_REQUIRE(CanHold(), kNeedsPending);
  STRATA_REQUIRE(FreesWait(), kFreesDoNotWait);
  const Stream stream = NewStream();
  DevicePtr ptr = 0;
  ASSERT_EQ(device().MemAlloc(&ptr, kBlockBytes), Status::kSuccess);
  LongWork(stream);
  ASSERT_EQ(device().StreamQuery(stream), Status::kNotReady);
  ASSERT_EQ(device().MemFree(ptr), Status::kSuccess);
  EXPECT_EQ(device().StreamQuery(stream), Status::kSuccess);
}

TEST_P(MemoryConformanceTest, RuleH5FreeingHostMemoryWaitsForTheDevice) {
  STRATA_REQUIRE(CanHold(), kNeedsPending);
  STRATA_REQUIRE(FreesWait(), kFreesDoNotWait);
  const Stream stream = NewStream();
  void* ptr = nullptr;
  ASSERT_EQ(device().MallocHost(&ptr, kHostBytes, 0), Status::kSuccess);
  LongWork(stream);
  ASSERT_EQ(device().StreamQuery(stream), Status::kNotReady);
  ASSERT_EQ(device().FreeHost(ptr), Status::kSuccess);
  EXPECT_EQ(device().StreamQuery(stream), Status::kSuccess);
}

}  // namespace
}  // namespace strata
