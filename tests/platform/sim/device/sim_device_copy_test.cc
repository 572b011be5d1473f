// Bytes of the simulated device: the results of copies, fills and work.

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "strata/platform/device_work.h"
#include "strata/tests/platform/sim/memory/virtual_fixture.h"
#include "strata/tests/testing/devices/statuses.h"

namespace strata::sim {
namespace {

// No multiple of any granule, and more than a frame.
constexpr std::size_t kBytes = 3 * kFrameBytes + 12345;

DevicePtr AsDevice(const void* ptr) { return reinterpret_cast<DevicePtr>(ptr); }

class BackedFixture : public VirtualFixture {
 protected:
  explicit BackedFixture(const char* data = "backed") : VirtualFixture(data) {}

  void TearDown() override {
    for (std::vector<char>& memory : registered_) {
      EXPECT_EQ(device().HostUnregister(memory.data()), kOk);
    }
  }

  // Frames with frames of others between them.
  DevicePtr Scattered() {
    const DevicePtr a = Alloc(2 * kFrameBytes);
    Alloc(kFrameBytes);
    EXPECT_EQ(device().MemFree(a), kOk);
    return Alloc(kBytes);
  }

  // One range with handles of both devices, each of scattered frames.
  DevicePtr MappedFromBothDevices() {
    const DevicePtr ptr = Reserve(4);
    EXPECT_EQ(Map(ptr, 1, Create(1, 1)), kOk);
    EXPECT_EQ(Map(ptr + kFrameBytes, 1, Create(1)), kOk);
    EXPECT_EQ(Map(ptr + 2 * kFrameBytes, 2, Create(2, 1)), kOk);
    EXPECT_EQ(Allow(ptr, 4), kOk);
    return ptr;
  }

  DevicePtr Pinned() {
    void* ptr = nullptr;
    EXPECT_EQ(device().MallocHost(&ptr, kBytes, 0), kOk);
    return AsDevice(ptr);
  }

  DevicePtr Managed() {
    DevicePtr ptr = 0;
    EXPECT_EQ(device().MallocManaged(&ptr, kBytes, kManagedGlobal), kOk);
    return ptr;
  }

  DevicePtr Registered() {
    registered_.emplace_back(kBytes);
    EXPECT_EQ(device().HostRegister(registered_.back().data(), kBytes, 0), kOk);
    return AsDevice(registered_.back().data());
  }

  DevicePtr Pageable() {
    pageable_.emplace_back(kBytes);
    return AsDevice(pageable_.back().data());
  }

  // The bytes as the host sees them, for any kind of memory.
  unsigned char* View(DevicePtr ptr, std::size_t bytes = kBytes) {
    for (std::vector<char>& memory : pageable_) {
      if (AsDevice(memory.data()) == ptr) {
        return reinterpret_cast<unsigned char*>(memory.data());
      }
    }
    return static_cast<unsigned char*>(device().HostView(ptr, bytes));
  }

  Status Copy(DevicePtr target, DevicePtr source, std::size_t bytes,
              int ordinal = 0) {
    return device(ordinal).MemcpyAsync(target, source, bytes,
                                       device(ordinal).LegacyStream());
  }

  Status Work(const std::vector<WorkRange>& ranges, std::uint64_t pattern,
              int ordinal = 0) {
    std::lock_guard lock(platform_.mutex());
    return device(ordinal).ExecuteWork(ranges.data(), ranges.size(), pattern);
  }

  std::vector<std::vector<char>> registered_;
  std::vector<std::vector<char>> pageable_;
};

class SimDeviceCopyTest : public BackedFixture {};

// Distinct words, so that misplaced bytes are detected.
void WritePattern(unsigned char* bytes, std::size_t count, unsigned seed) {
  std::uint64_t word = seed;
  std::size_t at = 0;
  for (; at + sizeof word <= count; at += sizeof word) {
    word = word * 6364136223846793005u + 1442695040888963407u;
    std::memcpy(bytes + at, &word, sizeof word);
  }
  std::memset(bytes + at, static_cast<int>(seed), count - at);
}

TEST_F(SimDeviceCopyTest, BytesArriveFromEveryKindOfMemoryInEveryOther) {
  struct End {
    std::string name;
    DevicePtr ptr;
  };
  std::vector<End> ends = {
      {"scattered", Scattered()},   {"device", Alloc(kBytes)},
      {"peer", Alloc(kBytes, 1)},   {"mapped", MappedFromBothDevices()},
      {"pinned", Pinned()},         {"managed", Managed()},
      {"registered", Registered()}, {"pageable", Pageable()}};
  unsigned seed = 1;
  for (const End& from : ends) {
    WritePattern(View(from.ptr), kBytes, ++seed);
    for (const End& to : ends) {
      if (from.ptr == to.ptr) continue;
      SCOPED_TRACE(from.name + " to " + to.name);
      View(to.ptr)[0] = 1;
      View(to.ptr)[kBytes - 1] = 2;
      // All but the first and the last byte, so nothing is aligned.
      ASSERT_EQ(Copy(to.ptr + 1, from.ptr + 1, kBytes - 2), kOk);
      EXPECT_EQ(std::memcmp(View(to.ptr) + 1, View(from.ptr) + 1, kBytes - 2),
                0);
      EXPECT_EQ(View(to.ptr)[0], 1);
      EXPECT_EQ(View(to.ptr)[kBytes - 1], 2);
    }
  }
}

TEST_F(SimDeviceCopyTest, SmallAllocationsOfOneFrameKeepApart) {
  const DevicePtr a = Alloc(600);
  const DevicePtr b = Alloc(600);
  ASSERT_EQ(device().MemsetAsync(a, 1, 600, device().LegacyStream()), kOk);
  ASSERT_EQ(device().MemsetAsync(b, 2, 600, device().LegacyStream()), kOk);
  ASSERT_EQ(Copy(b, a, 100), kOk);
  EXPECT_EQ(View(a, 600)[599], 1);
  EXPECT_EQ(View(b, 600)[99], 1);
  EXPECT_EQ(View(b, 600)[100], 2);
}

TEST_F(SimDeviceCopyTest, FillReachesEveryFrameAndNoFurther) {
  for (const DevicePtr ptr : {Scattered(), MappedFromBothDevices()}) {
    std::memset(View(ptr), 9, kBytes);
    ASSERT_EQ(device().MemsetAsync(ptr + 3, 0x1A5, kBytes - 6,
                                   device().LegacyStream()),
              kOk);
    const std::vector<unsigned char> filled(kBytes - 6, 0xA5);
    EXPECT_EQ(std::memcmp(View(ptr) + 3, filled.data(), filled.size()), 0);
    EXPECT_EQ(View(ptr)[2], 9);
    EXPECT_EQ(View(ptr)[kBytes - 3], 9);
  }
}

TEST_F(SimDeviceCopyTest, FillOfPageableMemoryIsRefused) {
  const DevicePtr ptr = Pageable();
  EXPECT_EQ(device().MemsetAsync(ptr, 1, 8, device().LegacyStream()),
            Status::kInvalidValue);
  EXPECT_EQ(View(ptr)[0], 0);
}

TEST_F(SimDeviceCopyTest, EndThatIsPartlyPinnedIsNoPageableMemory) {
  const DevicePtr ptr = Registered();
  EXPECT_EQ(Copy(Alloc(kBytes), ptr + 1, kBytes), Status::kInvalidValue);
  EXPECT_EQ(Copy(Alloc(64), 8, 8), Status::kInvalidValue);
  EXPECT_EQ(Copy(Alloc(64), (DevicePtr{1} << 48) - 4, 8),
            Status::kInvalidValue);
}

TEST_F(SimDeviceCopyTest, AliasesShowTheSameBytes) {  // V9 T66
  const MemHandle handle = Create(2);
  const DevicePtr a = Reserve(2);
  const DevicePtr b = Reserve(2);
  ASSERT_EQ(Map(a, 2, handle), kOk);
  ASSERT_EQ(Map(b, 2, handle), kOk);
  ASSERT_EQ(Allow(a, 2), kOk);
  ASSERT_EQ(Allow(b, 2), kOk);
  ASSERT_EQ(
      device().MemsetAsync(a, 7, 2 * kFrameBytes, device().LegacyStream()),
      kOk);
  const DevicePtr out = Pinned();
  ASSERT_EQ(Copy(out, b + kFrameBytes - 8, 8), kOk);
  EXPECT_EQ(View(out)[7], 7);
}

TEST_F(SimDeviceCopyTest, BytesStayWithTheHandleNotWithTheAddress) {  // V14
  const DevicePtr ptr = Reserve(1);
  const MemHandle first = Create(1);
  const MemHandle second = Create(1);
  for (const MemHandle handle : {first, second}) {
    ASSERT_EQ(Map(ptr, 1, handle), kOk);
    ASSERT_EQ(Allow(ptr, 1), kOk);
    std::memset(View(ptr, 64), handle == first ? 1 : 2, 64);
    ASSERT_EQ(Unmap(ptr, 1), kOk);
  }
  ASSERT_EQ(Map(ptr, 1, first), kOk);
  EXPECT_EQ(View(ptr, 64)[63], 1);
}

TEST_F(SimDeviceCopyTest, ReleaseBeforeUnmapKeepsTheBytes) {  // T65
  const DevicePtr ptr = Reserve(1);
  const MemHandle handle = Create(1);
  ASSERT_EQ(Map(ptr, 1, handle), kOk);
  ASSERT_EQ(Allow(ptr, 1), kOk);
  std::memset(View(ptr, kFrameBytes), 5, kFrameBytes);
  ASSERT_EQ(device().ReleaseMemory(handle), kOk);
  Create(8);
  EXPECT_EQ(View(ptr, kFrameBytes)[kFrameBytes - 1], 5);
}

TEST_F(SimDeviceCopyTest, FreedFramesGoBackToTheHost) {
  const DevicePtr ptr = Alloc(8 * kFrameBytes);
  const DevicePtr small = Alloc(512);
  std::memset(View(ptr, 8 * kFrameBytes), 1, 8 * kFrameBytes);
  std::memset(View(small, 512), 1, 512);
  ASSERT_EQ(device().MemFree(ptr), kOk);
  ASSERT_EQ(device().MemFree(small), kOk);
  const DevicePtr again = Alloc(9 * kFrameBytes);
  const std::vector<unsigned char> zeroes(9 * kFrameBytes, 0);
  EXPECT_EQ(
      std::memcmp(View(again, zeroes.size()), zeroes.data(), zeroes.size()), 0);
}

TEST_F(SimDeviceCopyTest, WorkStoresItsPatternInWhatItWrites) {
  const DevicePtr a = Scattered();
  const DevicePtr b = Pinned();
  std::memset(View(a), 0, kBytes);
  std::memset(View(b), 0, kBytes);
  const std::size_t bytes = kBytes / 8 * 8;
  ASSERT_EQ(Work({{a, bytes, true}, {b, 64, false}, {b + 64, 8, true}},
                 0x0123456789ABCDEF),
            kOk);
  const std::vector<std::uint64_t> words(bytes / 8, 0x0123456789ABCDEF);
  EXPECT_EQ(std::memcmp(View(a), words.data(), bytes), 0);
  EXPECT_EQ(View(a)[bytes], 0);
  EXPECT_EQ(View(b)[63], 0);
  EXPECT_EQ(View(b)[64], 0xEF);
  EXPECT_EQ(View(b)[72], 0);
}

TEST_F(SimDeviceCopyTest, WorkWithOneWrongRangeDoesNothing) {
  const DevicePtr good = Alloc(64);
  const DevicePtr freed = Alloc(64);
  ASSERT_EQ(device().MemFree(freed), kOk);
  std::memset(View(good, 64), 0, 64);
  EXPECT_EQ(Work({{good, 64, true}, {freed, 8, false}}, 7),
            Status::kIllegalAddress);
  EXPECT_EQ(Work({{good, 72, true}}, 7), Status::kIllegalAddress);
  EXPECT_EQ(Work({{Pageable() + 8, 8, true}}, 7), Status::kIllegalAddress);
  EXPECT_EQ(View(good, 64)[0], 0);
}

TEST_F(SimDeviceCopyTest, WorkNeedsTheRightsItUses) {  // V6 V10
  const DevicePtr ptr = Reserve(1);
  ASSERT_EQ(Map(ptr, 1, Create(1, 1)), kOk);
  EXPECT_EQ(Work({{ptr, 8, false}}, 1), Status::kIllegalAddress);
  ASSERT_EQ(Allow(ptr, 1, 0, Access::kRead), kOk);
  EXPECT_EQ(Work({{ptr, 8, false}}, 1), kOk);
  EXPECT_EQ(Work({{ptr, 8, true}}, 1), Status::kIllegalAddress);
  ASSERT_EQ(Allow(ptr, 1), kOk);
  EXPECT_EQ(Work({{ptr, 8, true}}, 1), kOk);
  EXPECT_EQ(Work({{ptr, 8, false}}, 1, 1), Status::kIllegalAddress);
}

class SimDevicePoisonTest : public BackedFixture {
 protected:
  SimDevicePoisonTest() : BackedFixture("poison") {}
};

TEST_F(SimDevicePoisonTest, FreshMemoryIsMarkedAndFreedMemoryToo) {
  const DevicePtr large = Alloc(kFrameBytes);
  const DevicePtr small = Alloc(600);
  unsigned char* large_bytes = View(large, kFrameBytes);
  unsigned char* small_bytes = View(small, 600);
  EXPECT_EQ(large_bytes[kFrameBytes - 1], kFreshByte);
  EXPECT_EQ(small_bytes[599], kFreshByte);
  // Neither range is scattered, so these views outlive the memory.
  ASSERT_EQ(device().MemFree(large), kOk);
  ASSERT_EQ(device().MemFree(small), kOk);
  EXPECT_EQ(large_bytes[0], kFreedByte);
  EXPECT_EQ(small_bytes[599], kFreedByte);
}

TEST_F(SimDevicePoisonTest, MappedMemoryIsMarkedToo) {
  const DevicePtr ptr = Mapped(1);
  EXPECT_EQ(View(ptr, kFrameBytes)[kFrameBytes - 1], kFreshByte);
}

class SimDevicePhantomTest : public BackedFixture {
 protected:
  SimDevicePhantomTest() : BackedFixture("phantom") {}
};

TEST_F(SimDevicePhantomTest, CopiesAreCheckedAndBringZeros) {
  const DevicePtr phantom = Scattered();
  const DevicePtr pinned = Pinned();
  std::memset(View(pinned), 7, kBytes);
  EXPECT_EQ(Copy(phantom, pinned, kBytes), kOk);
  EXPECT_EQ(Copy(pinned, phantom, kBytes - 1), kOk);
  EXPECT_EQ(View(pinned)[0], 0);
  EXPECT_EQ(View(pinned)[kBytes - 2], 0);
  EXPECT_EQ(View(pinned)[kBytes - 1], 7);
  EXPECT_EQ(Copy(phantom, pinned, kBytes + 1), Status::kInvalidValue);
  EXPECT_EQ(Work({{phantom, 8, true}}, 1), kOk);
}

}  // namespace
}  // namespace strata::sim
