#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <fstream>
#include <map>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "strata/platform/sim/memory/device_memory.h"
#include "strata/tests/platform/sim/device/sim_fixture.h"

namespace strata::sim {
namespace {

class SimDeviceMemoryTest : public SimFixture {};

TEST_F(SimDeviceMemoryTest, CapacityIsWholeFramesAndAllFree) {
  PlatformOptions options = SimOptions(1, 3);
  options.sim_memory_bytes += kFrameBytes - 1;
  SimPlatform platform(options);
  std::size_t free_bytes = 0;
  std::size_t total_bytes = 0;
  ASSERT_EQ(platform.sim_device(0).MemGetInfo(&free_bytes, &total_bytes),
            Status::kSuccess);
  EXPECT_EQ(total_bytes, 3 * kFrameBytes);
  EXPECT_EQ(free_bytes, total_bytes);
}

TEST_F(SimDeviceMemoryTest, MemGetInfoNeedsBothResults) {
  std::size_t bytes = 0;
  EXPECT_EQ(device().MemGetInfo(nullptr, &bytes), Status::kInvalidValue);
  EXPECT_EQ(device().MemGetInfo(&bytes, nullptr), Status::kInvalidValue);
  EXPECT_EQ(bytes, 0u);
}

TEST_F(SimDeviceMemoryTest, AllocationsAreAlignedAndDoNotOverlap) {  // T13
  std::map<DevicePtr, std::size_t> live;
  std::mt19937_64 random(3);
  for (int i = 0; i < 60; ++i) {
    const std::size_t bytes = 1 + random() % (kFrameBytes * 5 / 4);
    DevicePtr ptr = 0;
    if (device().MemAlloc(&ptr, bytes) != Status::kSuccess) break;
    EXPECT_EQ(ptr % (bytes >= kOwnFramesBytes ? kFrameBytes : kSliceBytes), 0u);
    EXPECT_GE(device().caps().alloc_alignment_bytes, 256u);
    live[ptr] = bytes;
  }
  ASSERT_GT(live.size(), 30u);
  DevicePtr end = 0;
  for (const auto& [ptr, bytes] : live) {
    EXPECT_GE(ptr, end);
    end = ptr + bytes;
  }
}

TEST_F(SimDeviceMemoryTest, AddressesOfDevicesLieInWindowsOfTheirOwn) {
  for (const int ordinal : {0, 1}) {
    for (const std::size_t bytes : {std::size_t{1}, std::size_t{kFrameBytes}}) {
      const DevicePtr ptr = Alloc(bytes, ordinal);
      EXPECT_EQ(DeviceOfAddress(ptr), ordinal);
      EXPECT_LT(ptr, DevicePtr{1} << 53);
      EXPECT_GE(ptr, DevicePtr{1} << 49);
    }
  }
  EXPECT_EQ(DeviceOfAddress(kDeviceWindowBegin - 1), -1);
  EXPECT_EQ(
      DeviceOfAddress(kDeviceWindowBegin + kMaxSimDevices * kDeviceWindowBytes),
      -1);
  EXPECT_LT(kDeviceWindowBegin + kMaxSimDevices * kDeviceWindowBytes,
            DevicePtr{1} << 53);
}

TEST_F(SimDeviceMemoryTest, AddressesAreTheSameInEveryRun) {
  SimPlatform other(SimOptions(1, kFrames));
  for (const std::size_t bytes : {100u, 4000000u, 600000u, 1u, 2097152u}) {
    DevicePtr ptr = 0;
    ASSERT_EQ(other.sim_device(0).MemAlloc(&ptr, bytes), Status::kSuccess);
    EXPECT_EQ(ptr, Alloc(bytes));
  }
}

TEST_F(SimDeviceMemoryTest, FreedAddressIsNotHandedOutAgainSoon) {
  const DevicePtr small = Alloc(512);
  const DevicePtr large = Alloc(kFrameBytes);
  ASSERT_EQ(device().MemFree(small), Status::kSuccess);
  ASSERT_EQ(device().MemFree(large), Status::kSuccess);
  for (int i = 0; i < 1000; ++i) {
    for (const std::size_t bytes :
         {std::size_t{512}, std::size_t{kFrameBytes}}) {
      const DevicePtr ptr = Alloc(bytes);
      EXPECT_NE(ptr, small);
      EXPECT_NE(ptr, large);
      ASSERT_EQ(device().MemFree(ptr), Status::kSuccess);
    }
  }
}

TEST_F(SimDeviceMemoryTest, AddressesOfAUsedUpWindowAreUsedAgain) {
  // 10 TiB of addresses for frames, used 1 GiB at a time.
  SimPlatform platform(SimOptions(1, 512));
  SimDevice& gigabyte = platform.sim_device(0);
  DevicePtr first = 0;
  ASSERT_EQ(gigabyte.MemAlloc(&first, std::size_t{1} << 30), Status::kSuccess);
  ASSERT_EQ(gigabyte.MemFree(first), Status::kSuccess);
  int allocations = 0;
  DevicePtr ptr = 0;
  do {
    ASSERT_EQ(gigabyte.MemAlloc(&ptr, std::size_t{1} << 30), Status::kSuccess);
    ASSERT_EQ(DeviceOfAddress(ptr), 0);
    ASSERT_EQ(gigabyte.MemFree(ptr), Status::kSuccess);
    ASSERT_LT(++allocations, 100000);
  } while (ptr != first);
  EXPECT_GT(allocations, 10000);
}

TEST_F(SimDeviceMemoryTest, ScatteredSurvivorsDoNotMakeAddressesRunOut) {
  // One frame of each full device survives. Their addresses are spread over the
  // window, so no gap contains an address that still has frames.
  const std::uint64_t frames = kMaxDeviceMemoryBytes / kFrameBytes / 4;
  SimPlatform platform(SimOptions(1, frames));
  SimDevice& big = platform.sim_device(0);
  std::vector<DevicePtr> survivors;
  for (std::uint64_t used = 0; used < 40; ++used) {
    DevicePtr ptr = 0;
    DevicePtr rest = 0;
    ASSERT_EQ(big.MemAlloc(&ptr, kFrameBytes), Status::kSuccess);
    survivors.push_back(ptr);
    ASSERT_EQ(big.MemAlloc(&rest, (frames - used - 1) * kFrameBytes),
              Status::kSuccess)
        << used;
    ASSERT_EQ(big.MemFree(rest), Status::kSuccess);
  }
}

TEST_F(SimDeviceMemoryTest, FreeMemoryMovesInFramesAndReturns) {  // T15
  const std::size_t before = FreeBytes();
  const DevicePtr large = Alloc(kFrameBytes + 1);
  EXPECT_EQ(FreeBytes(), before - 2 * kFrameBytes);
  const DevicePtr small = Alloc(1);
  EXPECT_EQ(FreeBytes(), before - 3 * kFrameBytes);
  const DevicePtr shared = Alloc(kOwnFramesBytes - 1);
  EXPECT_EQ(FreeBytes(), before - 3 * kFrameBytes);
  EXPECT_EQ(FreeBytes(1), kFrames * kFrameBytes);
  for (const DevicePtr ptr : {large, small, shared}) {
    EXPECT_EQ(device().MemFree(ptr), Status::kSuccess);
  }
  EXPECT_EQ(FreeBytes(), before);
}

TEST_F(SimDeviceMemoryTest, FailsOnlyWithoutFramesAndWorksAgainAfter) {  // T14
  const DevicePtr rest = Alloc((kFrames - 1) * kFrameBytes);
  DevicePtr ptr = 77;
  EXPECT_EQ(device().MemAlloc(&ptr, kFrameBytes + 1),
            Status::kMemoryAllocation);
  EXPECT_EQ(device().MemAlloc(&ptr, SIZE_MAX), Status::kMemoryAllocation);
  EXPECT_EQ(ptr, 77u);
  EXPECT_EQ(FreeBytes(), kFrameBytes);
  EXPECT_NE(Alloc(kFrameBytes), 0u);
  EXPECT_EQ(device().MemAlloc(&ptr, 1), Status::kMemoryAllocation);
  EXPECT_EQ(device().Synchronize(), Status::kSuccess);
  EXPECT_EQ(device().MemFree(rest), Status::kSuccess);
  EXPECT_NE(Alloc(1), 0u);
}

TEST(DeviceMemoryTest, ExternalUseTakesWhatIsFreeAndNoMore) {
  DeviceMemory memory(0, 10 * kFrameBytes);
  DevicePtr ptr = 0;
  ASSERT_EQ(memory.Allocate(2 * kFrameBytes, &ptr), Status::kSuccess);
  EXPECT_EQ(memory.TakeExternal(kFrameBytes + 1), 2 * kFrameBytes);
  EXPECT_EQ(memory.free_bytes(), 6 * kFrameBytes);
  EXPECT_EQ(memory.total_bytes(), 10 * kFrameBytes);
  EXPECT_EQ(memory.TakeExternal(UINT64_MAX), 6 * kFrameBytes);
  EXPECT_EQ(memory.TakeExternal(1), 0u);
  EXPECT_EQ(memory.external_bytes(), 8 * kFrameBytes);
  EXPECT_EQ(memory.peak_used_bytes(), 2 * kFrameBytes);
  EXPECT_EQ(memory.Allocate(1, &ptr), Status::kMemoryAllocation);
  memory.GiveExternal(kFrameBytes);
  ASSERT_EQ(memory.Allocate(1, &ptr), Status::kSuccess);
  EXPECT_EQ(memory.peak_used_bytes(), 3 * kFrameBytes);
}

TEST(DeviceMemoryTest, ExternalUseGivesBackWhatItTookAndNoMore) {
  DeviceMemory memory(0, 10 * kFrameBytes);
  std::vector<DevicePtr> ptrs(5);
  for (DevicePtr& ptr : ptrs) {
    ASSERT_EQ(memory.Allocate(kFrameBytes, &ptr), Status::kSuccess);
  }
  // Free frames are now scattered.
  ASSERT_EQ(memory.Free(ptrs[1]), Status::kSuccess);
  ASSERT_EQ(memory.Free(ptrs[3]), Status::kSuccess);
  ASSERT_EQ(memory.TakeExternal(6 * kFrameBytes), 6 * kFrameBytes);
  memory.GiveExternal(5 * kFrameBytes - 1);
  EXPECT_EQ(memory.external_bytes(), kFrameBytes);
  EXPECT_EQ(memory.free_bytes(), 6 * kFrameBytes);
  memory.GiveExternal(UINT64_MAX);
  EXPECT_EQ(memory.free_bytes(), 7 * kFrameBytes);
  memory.GiveExternal(kFrameBytes);
  EXPECT_EQ(memory.free_bytes(), 7 * kFrameBytes);
  DevicePtr rest = 0;
  EXPECT_EQ(memory.Allocate(7 * kFrameBytes, &rest), Status::kSuccess);
}

TEST_F(SimDeviceMemoryTest, PeakUsedIsTheMostThatMemGetInfoShowedAsTaken) {
  EXPECT_EQ(device().peak_used_bytes(), 0U);
  const DevicePtr first = Alloc(3 * kFrameBytes);
  const DevicePtr second = Alloc(kFrameBytes + 1);
  const std::uint64_t taken = kFrames * kFrameBytes - FreeBytes();
  EXPECT_EQ(taken, 5 * kFrameBytes);
  ASSERT_EQ(device().MemFree(first), Status::kSuccess);
  Alloc(kFrameBytes);
  EXPECT_EQ(device().peak_used_bytes(), taken);
  ASSERT_EQ(device().MemFree(second), Status::kSuccess);
  EXPECT_EQ(device(1).peak_used_bytes(), 0U);
}

TEST_F(SimDeviceMemoryTest, ResetPeakUsedIsWhatIsUsedNow) {
  const DevicePtr first = Alloc(3 * kFrameBytes);
  Alloc(kFrameBytes);
  ASSERT_EQ(device().MemFree(first), Status::kSuccess);
  device().ResetPeakUsedBytes();
  EXPECT_EQ(device().peak_used_bytes(), kFrameBytes);
  Alloc(kFrameBytes);
  EXPECT_EQ(device().peak_used_bytes(), 2 * kFrameBytes);
}

// A device full of scattered frames still serves a request for all free memory.
TEST_F(SimDeviceMemoryTest, FramesNeedNotBeContiguous) {
  std::vector<DevicePtr> ptrs;
  for (std::uint64_t i = 0; i < kFrames; ++i) {
    ptrs.push_back(Alloc(kFrameBytes));
  }
  for (std::size_t i = 0; i < ptrs.size(); i += 2) {
    ASSERT_EQ(device().MemFree(ptrs[i]), Status::kSuccess);
  }
  EXPECT_NE(Alloc(kFrames / 2 * kFrameBytes), 0u);
  EXPECT_EQ(FreeBytes(), 0u);
}

TEST_F(SimDeviceMemoryTest, NoBytesSucceedsWithANullAddress) {  // T17
  DevicePtr ptr = 77;
  EXPECT_EQ(device().MemAlloc(&ptr, 0), Status::kSuccess);
  EXPECT_EQ(ptr, 0u);
  EXPECT_EQ(FreeBytes(), kFrames * kFrameBytes);
  EXPECT_EQ(device().MemFree(0), Status::kSuccess);
  EXPECT_EQ(device().MemAlloc(nullptr, 1), Status::kInvalidValue);
}

TEST_F(SimDeviceMemoryTest, WrongFreeChangesNothing) {  // T13
  const DevicePtr large = Alloc(2 * kFrameBytes);
  const DevicePtr small = Alloc(1024);
  const DevicePtr foreign = Alloc(1024, 1);
  const DevicePtr freed = Alloc(1024);
  ASSERT_EQ(device().MemFree(freed), Status::kSuccess);
  const std::size_t before = FreeBytes();
  int on_host = 0;
  for (const DevicePtr wrong :
       {freed, large + 1, large + kFrameBytes, small + 512, foreign,
        small + (DevicePtr{1} << 40), reinterpret_cast<DevicePtr>(&on_host)}) {
    EXPECT_EQ(device().MemFree(wrong), Status::kInvalidValue) << wrong;
  }
  EXPECT_EQ(FreeBytes(), before);
  EXPECT_EQ(device().Leaks().allocations, 2u);
  EXPECT_EQ(device(1).Leaks().allocations, 1u);
}

TEST_F(SimDeviceMemoryTest, CopiesAndFillsTakeLiveRangesOnly) {
  const Stream stream = device().LegacyStream();
  const DevicePtr a = Alloc(4096);
  const DevicePtr b = Alloc(4096, 1);
  EXPECT_EQ(device().MemcpyAsync(a, b, 4096, stream), Status::kSuccess);
  EXPECT_EQ(device().MemcpyAsync(a + 96, b, 4000, stream), Status::kSuccess);
  EXPECT_EQ(device().MemcpyAsync(a + 96, b, 4001, stream),
            Status::kInvalidValue);
  EXPECT_EQ(device().MemcpyAsync(a, b + 4096, 1, stream),
            Status::kInvalidValue);
  EXPECT_EQ(device().MemcpyAsync(a, b, SIZE_MAX, stream),
            Status::kInvalidValue);
  EXPECT_EQ(device().MemsetAsync(a, 1, 4096, stream), Status::kSuccess);
  EXPECT_EQ(device().MemsetAsync(a, 1, 4097, stream), Status::kInvalidValue);
  EXPECT_EQ(device().MemsetAsync(0, 1, 1, stream), Status::kInvalidValue);
  int on_host = 5;
  EXPECT_EQ(device().MemsetAsync(reinterpret_cast<DevicePtr>(&on_host), 1,
                                 sizeof on_host, stream),
            Status::kInvalidValue);
  EXPECT_EQ(on_host, 5);
  ASSERT_EQ(device(1).MemFree(b), Status::kSuccess);
  EXPECT_EQ(device().MemcpyAsync(a, b, 4096, stream), Status::kInvalidValue);
}

TEST_F(SimDeviceMemoryTest, CopyNeedsAStreamOfItsDevice) {
  const DevicePtr a = Alloc(4096);
  EXPECT_EQ(device().MemcpyAsync(a, a, 1, device(1).LegacyStream()),
            Status::kInvalidResourceHandle);
  EXPECT_EQ(device().MemsetAsync(a, 0, 1, Stream{}),
            Status::kInvalidResourceHandle);
}

TEST_F(SimDeviceMemoryTest, PointerAttributesKnowEveryKindOfMemory) {
  const DevicePtr on_one = Alloc(4096, 1);
  void* pinned = nullptr;
  ASSERT_EQ(device().MallocHost(&pinned, 4096, 0), Status::kSuccess);
  DevicePtr managed = 0;
  ASSERT_EQ(device(1).MallocManaged(&managed, 4096, kManagedGlobal),
            Status::kSuccess);
  std::vector<char> registered(4096);
  ASSERT_EQ(device().HostRegister(registered.data(), 4096, 0),
            Status::kSuccess);
  const auto attributes = [&](DevicePtr ptr) {
    PointerInfo info;
    info.device = 99;
    EXPECT_EQ(device().PointerAttributes(ptr, &info), Status::kSuccess);
    return std::make_pair(info.type, info.device);
  };
  EXPECT_EQ(attributes(on_one + 4095), std::make_pair(MemoryType::kDevice, 1));
  EXPECT_EQ(attributes(on_one + 4096),
            std::make_pair(MemoryType::kUnregistered, -1));
  EXPECT_EQ(attributes(reinterpret_cast<DevicePtr>(pinned) + 7),
            std::make_pair(MemoryType::kHost, 0));
  EXPECT_EQ(attributes(managed), std::make_pair(MemoryType::kManaged, 1));
  EXPECT_EQ(attributes(reinterpret_cast<DevicePtr>(registered.data())),
            std::make_pair(MemoryType::kHost, 0));
  EXPECT_EQ(attributes(reinterpret_cast<DevicePtr>(&pinned)),
            std::make_pair(MemoryType::kUnregistered, -1));
  EXPECT_EQ(device().PointerAttributes(managed, nullptr),
            Status::kInvalidValue);
  ASSERT_EQ(device().HostUnregister(registered.data()), Status::kSuccess);
}

TEST_F(SimDeviceMemoryTest, PeerAccessIsEnabledOncePerDirection) {
  bool can = false;
  EXPECT_EQ(device().CanAccessPeer(1, &can), Status::kSuccess);
  EXPECT_TRUE(can);
  EXPECT_EQ(device().CanAccessPeer(0, &can), Status::kSuccess);
  EXPECT_FALSE(can);
  EXPECT_EQ(device().CanAccessPeer(2, &can), Status::kInvalidDevice);
  EXPECT_EQ(device().CanAccessPeer(1, nullptr), Status::kInvalidValue);
  EXPECT_EQ(device().EnablePeerAccess(1), Status::kSuccess);
  EXPECT_EQ(device().EnablePeerAccess(1), Status::kPeerAccessAlreadyEnabled);
  EXPECT_EQ(device(1).EnablePeerAccess(0), Status::kSuccess);
  EXPECT_EQ(device().EnablePeerAccess(0), Status::kInvalidDevice);
  EXPECT_EQ(device().EnablePeerAccess(2), Status::kInvalidDevice);
  EXPECT_EQ(device().EnablePeerAccess(-1), Status::kInvalidDevice);
}

// Random use compared with a model that knows only the number of frames.
TEST_F(SimDeviceMemoryTest, RandomUseKeepsEveryFrameAccountedFor) {
  std::mt19937_64 random(11);
  std::map<DevicePtr, std::size_t> live;
  std::uint64_t own_frames = 0;
  std::uint64_t small_bytes = 0;
  for (int step = 0; step < 20000; ++step) {
    if (live.empty() || random() % 100 < 52) {
      const std::size_t bytes = random() % 8 == 0
                                    ? 1 + random() % (4 * kFrameBytes)
                                    : 1 + random() % kOwnFramesBytes;
      DevicePtr ptr = 0;
      const std::size_t free_before = FreeBytes();
      const Status status = device().MemAlloc(&ptr, bytes);
      const std::uint64_t frames = (bytes + kFrameBytes - 1) / kFrameBytes;
      if (status == Status::kMemoryAllocation) {
        ASSERT_LT(free_before, frames * kFrameBytes);
        ASSERT_EQ(FreeBytes(), free_before);
        continue;
      }
      ASSERT_EQ(status, Status::kSuccess);
      ASSERT_TRUE(live.emplace(ptr, bytes).second);
      own_frames += bytes >= kOwnFramesBytes ? frames : 0;
      small_bytes += bytes < kOwnFramesBytes ? bytes : 0;
    } else {
      auto victim = live.lower_bound(live.begin()->first +
                                     random() % (DevicePtr{1} << 42));
      if (victim == live.end()) victim = live.begin();
      ASSERT_EQ(device().MemFree(victim->first), Status::kSuccess);
      const std::size_t bytes = victim->second;
      own_frames -= bytes >= kOwnFramesBytes
                        ? (bytes + kFrameBytes - 1) / kFrameBytes
                        : 0;
      small_bytes -= bytes < kOwnFramesBytes ? bytes : 0;
      live.erase(victim);
    }
    const std::uint64_t used = kFrames - FreeBytes() / kFrameBytes;
    ASSERT_GE(used * kFrameBytes, own_frames * kFrameBytes + small_bytes);
    if (small_bytes == 0) {
      ASSERT_EQ(used, own_frames);
    }
  }
  for (const auto& [ptr, bytes] : live) {
    ASSERT_EQ(device().MemFree(ptr), Status::kSuccess);
  }
  EXPECT_EQ(FreeBytes(), kFrames * kFrameBytes);
}

TEST_F(SimDeviceMemoryTest, ThreadsShareTheDeviceWithoutLoss) {
  std::vector<std::thread> threads;
  for (unsigned seed = 0; seed < 4; ++seed) {
    threads.emplace_back([this, seed] {
      std::mt19937_64 random(seed);
      SimDevice& mine = device(static_cast<int>(seed % 2));
      Stream stream;
      ASSERT_EQ(mine.StreamCreate(&stream, 0), Status::kSuccess);
      for (int i = 0; i < 2000; ++i) {
        DevicePtr ptr = 0;
        const std::size_t bytes = 1 + random() % kFrameBytes;
        ASSERT_EQ(mine.MemAlloc(&ptr, bytes), Status::kSuccess);
        ASSERT_EQ(mine.MemsetAsync(ptr, 0, bytes, stream), Status::kSuccess);
        ASSERT_EQ(mine.MemFree(ptr), Status::kSuccess);
      }
      ASSERT_EQ(mine.StreamDestroy(stream), Status::kSuccess);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(FreeBytes(0), kFrames * kFrameBytes);
  EXPECT_EQ(FreeBytes(1), kFrames * kFrameBytes);
  EXPECT_EQ(platform_.LeakReport(), "");
  EXPECT_EQ(device(0).CallCount(DeviceCall::kMemAlloc), 4000u);
}

std::size_t ResidentKibibytes() {
  std::ifstream status("/proc/self/status");
  std::string line;
  while (std::getline(status, line)) {
    if (line.rfind("VmRSS:", 0) == 0) return std::stoul(line.substr(6));
  }
  return 0;
}

// T90: the cost of a device depends on its live memory, not on its size or age.
TEST_F(SimDeviceMemoryTest, AMillionAllocationsOf80GiBLeaveTheHostItsMemory) {
  SimPlatform platform(SimOptions(1, 40960));
  SimDevice& big = platform.sim_device(0);
  const std::size_t resident_before = ResidentKibibytes();
  ASSERT_GT(resident_before, 0u);
  std::mt19937_64 random(90);
  std::vector<DevicePtr> live(20000, 0);
  for (int i = 0; i < 1000000; ++i) {
    DevicePtr& slot = live[random() % live.size()];
    ASSERT_EQ(big.MemFree(slot), Status::kSuccess);
    const std::size_t bytes = random() % 16 == 0 ? 3 * kFrameBytes : 40000;
    ASSERT_EQ(big.MemAlloc(&slot, bytes), Status::kSuccess);
  }
  const std::size_t resident_after = ResidentKibibytes();
  // The sum includes the bookkeeping of the sanitizers, which is far below
  // this.
  EXPECT_LT(resident_after, resident_before + 200 * 1024);
  for (const DevicePtr ptr : live) {
    ASSERT_EQ(big.MemFree(ptr), Status::kSuccess);
  }
  EXPECT_EQ(platform.LeakReport(), "");
}

}  // namespace
}  // namespace strata::sim
