// Host functions' views of the simulated device's bytes.

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <fstream>
#include <mutex>

#include "strata/platform/device_work.h"
#include "strata/tests/platform/sim/memory/virtual_fixture.h"
#include "strata/tests/testing/devices/statuses.h"

namespace strata::sim {
namespace {

class HostViewsTest : public VirtualFixture {
 protected:
  HostViewsTest() : VirtualFixture("backed") {}

  unsigned char* View(DevicePtr ptr, std::size_t bytes) {
    return static_cast<unsigned char*>(device().HostView(ptr, bytes));
  }

  // Three frames and 100 bytes, not adjacent.
  DevicePtr Scattered() {
    const DevicePtr a = Alloc(kFrameBytes);
    Alloc(kFrameBytes);
    EXPECT_EQ(device().MemFree(a), kOk);
    return Alloc(3 * kFrameBytes + 100);
  }
};

TEST_F(HostViewsTest, ScatteredFramesAreContiguousToTheHost) {
  const DevicePtr ptr = Scattered();
  const std::size_t bytes = 3 * kFrameBytes + 100;
  unsigned char* view = View(ptr, bytes);
  ASSERT_NE(view, nullptr);
  for (std::size_t at = 0; at < bytes; at += 4096) {
    view[at] = static_cast<unsigned char>(at / 4096);
  }
  // In parts within a frame, without the view.
  for (std::size_t at = 0; at < bytes; at += 4096) {
    EXPECT_EQ(*View(ptr + at, 1), static_cast<unsigned char>(at / 4096));
  }
}

TEST_F(HostViewsTest, ViewsOfOneRangeAreTheSameAndOfOthersShowItsBytes) {
  const DevicePtr ptr = Scattered();
  unsigned char* view = View(ptr, 3 * kFrameBytes);
  EXPECT_EQ(View(ptr, 3 * kFrameBytes), view);
  // Begins inside a page and crosses a frame.
  const std::size_t start = kFrameBytes - 4097;
  unsigned char* part = View(ptr + start, kFrameBytes);
  ASSERT_NE(part, nullptr);
  std::memset(part, 3, kFrameBytes);
  EXPECT_EQ(view[start], 3);
  EXPECT_EQ(view[start + kFrameBytes - 1], 3);
  EXPECT_EQ(view[start + kFrameBytes], 0);
}

TEST_F(HostViewsTest, MappedMemoryOfSeveralHandlesIsOneView) {
  const DevicePtr ptr = Reserve(3);
  for (std::uint64_t i = 0; i < 3; ++i) {
    ASSERT_EQ(Map(ptr + i * kFrameBytes, 1, Create(1, i % 2 == 0 ? 0 : 1)),
              kOk);
  }
  unsigned char* view = View(ptr, 3 * kFrameBytes);
  ASSERT_NE(view, nullptr);
  view[2 * kFrameBytes - 1] = 4;
  EXPECT_EQ(*View(ptr + 2 * kFrameBytes - 1, 1), 4);
}

TEST_F(HostViewsTest, ViewFollowsWhatIsMappedNow) {
  const DevicePtr ptr = Reserve(2);
  const MemHandle first = Create(1);
  const MemHandle second = Create(1);
  const MemHandle third = Create(1);
  ASSERT_EQ(Map(ptr, 1, first), kOk);
  ASSERT_EQ(Map(ptr + kFrameBytes, 1, third), kOk);
  View(ptr, 2 * kFrameBytes)[0] = 1;
  ASSERT_EQ(Unmap(ptr, 1), kOk);
  EXPECT_EQ(View(ptr, 2 * kFrameBytes), nullptr);
  ASSERT_EQ(Map(ptr, 1, second), kOk);
  EXPECT_EQ(View(ptr, 2 * kFrameBytes)[0], 0);
}

TEST_F(HostViewsTest, ViewOfFreedMemoryIsGone) {
  const DevicePtr ptr = Scattered();
  const auto kept = [&] {
    std::lock_guard lock(platform_.mutex());
    return platform_.host_views().Find(ptr, 3 * kFrameBytes);
  };
  unsigned char* view = View(ptr, 3 * kFrameBytes);
  ASSERT_NE(view, nullptr);
  EXPECT_EQ(kept(), view);
  ASSERT_EQ(device().MemFree(ptr), kOk);
  EXPECT_EQ(View(ptr, 3 * kFrameBytes), nullptr);
  EXPECT_EQ(kept(), nullptr);
}

TEST_F(HostViewsTest, WhatIsNoLiveMemoryHasNoView) {
  const DevicePtr ptr = Alloc(1000);
  EXPECT_NE(View(ptr, 1000), nullptr);
  EXPECT_EQ(View(ptr, 1001), nullptr);
  EXPECT_EQ(View(ptr, 0), nullptr);
  EXPECT_EQ(View(0, 1), nullptr);
  int on_stack = 0;
  EXPECT_EQ(View(reinterpret_cast<DevicePtr>(&on_stack), 4), nullptr);
  const DevicePtr range = Reserve(2);
  ASSERT_EQ(Map(range, 1, Create(1)), kOk);
  EXPECT_EQ(View(range, 2 * kFrameBytes), nullptr);
}

TEST_F(HostViewsTest, HostMemoryIsItsOwnView) {
  void* pinned = nullptr;
  ASSERT_EQ(device().MallocHost(&pinned, 64, 0), kOk);
  EXPECT_EQ(device().HostView(reinterpret_cast<DevicePtr>(pinned), 64), pinned);
}

TEST_F(HostViewsTest, HostFunctionMayAskForAView) {
  struct Kernel {
    SimDevice* device;
    DevicePtr ptr;
  } kernel{&device(), Alloc(64)};
  ASSERT_EQ(device().LaunchHostFunc(
                device().LegacyStream(),
                [](void* argument) {
                  auto* k = static_cast<Kernel*>(argument);
                  std::memset(k->device->HostView(k->ptr, 64), 6, 64);
                },
                &kernel),
            kOk);
  ASSERT_EQ(device().Synchronize(), kOk);
  EXPECT_EQ(View(kernel.ptr, 64)[63], 6);
}

// Limits the process to its current host addresses, plus some for other uses.
void TakeAwayAddresses(std::uint64_t spare_bytes) {
  std::uint64_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  const auto page_bytes = static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  const rlim_t most = pages * page_bytes + spare_bytes;
  const rlimit limit{most, most};
  setrlimit(RLIMIT_AS, &limit);
}

// A silently skipped kernel would leave wrong bytes.
TEST_F(HostViewsTest, KernelThatCannotBeShownItsMemoryAborts) {
  const DevicePtr ptr = Alloc(kFrameBytes);
  Alloc(kFrameBytes);
  ASSERT_EQ(device().MemFree(ptr), kOk);
  const WorkRange range{Alloc(40 * kFrameBytes), 40 * kFrameBytes, true};
  const HostKernel kernel = [](void*, void* const*) {};
  const auto launch = [&] {
    TakeAwayAddresses(8 * kFrameBytes);
    platform_.work(0)->Launch(device().LegacyStream(), &range, 1, kernel,
                              nullptr);
  };
  EXPECT_DEATH(launch(), "no mappings left");
}

TEST(PhantomViewTest, PhantomMemoryHasNoView) {
  SimPlatform platform(SimOptions(1, 8));
  DevicePtr ptr = 0;
  ASSERT_EQ(platform.sim_device(0).MemAlloc(&ptr, 3 * kFrameBytes), kOk);
  EXPECT_EQ(platform.sim_device(0).HostView(ptr, 3 * kFrameBytes), nullptr);
  EXPECT_EQ(platform.sim_device(0).HostView(ptr, 8), nullptr);
}

}  // namespace
}  // namespace strata::sim
