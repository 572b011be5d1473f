// Pools of the simulated device while work is pending in its streams.

#include <gtest/gtest.h>

#include <cstdint>

#include "strata/tests/platform/sim/streams/sim_progress_fixture.h"

namespace strata::sim {
namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;

// Work runs only when the host waits. A pool reuses a block in another stream
// only if that stream is ordered behind the free.
class SimPoolOrderTest : public SimProgressFixture {
 protected:
  SimPoolOrderTest() {
    Build("lazy");
    EXPECT_EQ(device().DefaultMemPool(&pool_), Status::kSuccess);
    for (const PoolAttribute off :
         {PoolAttribute::kReuseAllowOpportunistic,
          PoolAttribute::kReuseAllowInternalDependencies}) {
      Set(off, 0);
    }
  }

  void Set(PoolAttribute attribute, std::uint64_t value) {
    EXPECT_EQ(device().PoolSetAttribute(pool_, attribute, value),
              Status::kSuccess);
  }
  // Only a wait of the host lets another stream reuse a block.
  void FollowNothing() {
    Set(PoolAttribute::kReuseFollowEventDependencies, 0);
    Set(PoolAttribute::kReleaseThreshold, UINT64_MAX);
  }

  DevicePtr Alloc(const Stream& stream) {
    DevicePtr ptr = 0;
    EXPECT_EQ(device().MallocFromPoolAsync(&ptr, kMiB, pool_, stream),
              Status::kSuccess);
    return ptr;
  }

  MemPool pool_;
};

TEST_F(SimPoolOrderTest, EventRecordedBeforeTheFreeDoesNotOrderIt) {  // P4
  const Stream a = NewStream();
  const Stream b = NewStream();
  const DevicePtr ptr = Alloc(a);
  const Event before = Record(a);
  ASSERT_EQ(device().FreeAsync(ptr, a), Status::kSuccess);
  WaitFor(b, before);
  EXPECT_NE(Alloc(b), ptr);
}

TEST_F(SimPoolOrderTest, EventRecordedAfterTheFreeOrdersIt) {  // P4
  const Stream a = NewStream();
  const Stream b = NewStream();
  const DevicePtr ptr = Alloc(a);
  ASSERT_EQ(device().FreeAsync(ptr, a), Status::kSuccess);
  WaitFor(b, Record(a));
  EXPECT_EQ(Alloc(b), ptr);
}

// P5: a wait for an event covers all work before the event, also in other
// streams, and no later work.
TEST_F(SimPoolOrderTest, WaitForAnEventCoversWhatComesBeforeIt) {
  FollowNothing();
  const Stream a = NewStream();
  const Stream b = NewStream();
  const DevicePtr before = Alloc(a);
  Alloc(a);  // keeps the two frees in separate blocks
  const DevicePtr after = Alloc(a);
  ASSERT_EQ(device().FreeAsync(before, a), Status::kSuccess);
  WaitFor(b, Record(a));
  const Event event = Record(b);
  ASSERT_EQ(device().FreeAsync(after, a), Status::kSuccess);
  ASSERT_EQ(device().EventSynchronize(event), Status::kSuccess);
  const Stream c = NewStream();
  EXPECT_EQ(Alloc(c), before);
  EXPECT_NE(Alloc(c), after);
}

TEST_F(SimPoolOrderTest, WaitForAStreamCoversItsOwnFreesOnly) {  // P5
  FollowNothing();
  const Stream a = NewStream();
  const Stream b = NewStream();
  const DevicePtr of_a = Alloc(a);
  const DevicePtr of_b = Alloc(b);
  ASSERT_EQ(device().FreeAsync(of_a, a), Status::kSuccess);
  ASSERT_EQ(device().FreeAsync(of_b, b), Status::kSuccess);
  ASSERT_EQ(device().StreamSynchronize(b), Status::kSuccess);
  const Stream c = NewStream();
  EXPECT_EQ(Alloc(c), of_b);
  EXPECT_NE(Alloc(c), of_a);
}

// A blocking stream without its own work behind the work of the legacy stream
// does not wait for that work.
TEST_F(SimPoolOrderTest, WaitForAnIdleBlockingStreamCoversNothing) {  // P5
  FollowNothing();
  const Stream blocking = NewStream(kStreamDefault);
  const Stream legacy = device().LegacyStream();
  const DevicePtr ptr = Alloc(legacy);
  ASSERT_EQ(device().FreeAsync(ptr, legacy), Status::kSuccess);
  ASSERT_EQ(device().StreamSynchronize(blocking), Status::kSuccess);
  EXPECT_NE(device().PendingCount(), 0u);
  EXPECT_NE(Alloc(NewStream()), ptr);
}

TEST_F(SimPoolOrderTest, WaitForADeviceCoversItsStreams) {  // P5
  FollowNothing();
  const Stream a = NewStream();
  const Stream other = NewStream(kStreamNonBlocking, 1);
  const DevicePtr of_a = Alloc(a);
  const DevicePtr of_other = Alloc(other);
  ASSERT_EQ(device().FreeAsync(of_a, a), Status::kSuccess);
  ASSERT_EQ(device(1).FreeAsync(of_other, other), Status::kSuccess);
  ASSERT_EQ(device().Synchronize(), Status::kSuccess);
  const Stream c = NewStream();
  EXPECT_EQ(Alloc(c), of_a);
  EXPECT_NE(Alloc(c), of_other);
}

// P1: a host function that stands for a kernel got no pointer if the later free
// had been submitted before it ran.
TEST_F(SimPoolOrderTest, HostViewLastsUntilTheWorkBeforeTheFreeIsDone) {
  PlatformOptions options = SimOptions(2, kFrames);
  options.sim_progress = "lazy";
  options.sim_data = "backed";
  Build(options);
  ASSERT_EQ(device().DefaultMemPool(&pool_), Status::kSuccess);
  const Stream a = NewStream();
  struct Call {
    SimDevice* device;
    DevicePtr ptr;
    int seen;
  } call{&device(), Alloc(a), 0};
  ASSERT_EQ(device().MemsetAsync(call.ptr, 7, kMiB, a), Status::kSuccess);
  ASSERT_EQ(device().LaunchHostFunc(
                a,
                [](void* argument) {
                  auto* c = static_cast<Call*>(argument);
                  const void* view = c->device->HostView(c->ptr, kMiB);
                  if (view != nullptr) {
                    c->seen = *static_cast<const unsigned char*>(view);
                  }
                },
                &call),
            Status::kSuccess);
  ASSERT_EQ(device().FreeAsync(call.ptr, a), Status::kSuccess);
  EXPECT_NE(device().HostView(call.ptr, kMiB), nullptr);
  EXPECT_EQ(device().HostView(call.ptr, 2 * kMiB), nullptr);
  ASSERT_EQ(device().StreamSynchronize(a), Status::kSuccess);
  EXPECT_EQ(call.seen, 7);
  EXPECT_EQ(device().HostView(call.ptr, kMiB), nullptr);
}

TEST_F(SimPoolOrderTest, WorkBeforeTheFreeStillFindsItsBlock) {  // P1
  const Stream a = NewStream();
  const DevicePtr ptr = Alloc(a);
  ASSERT_EQ(device().MemsetAsync(ptr, 1, kMiB, a), Status::kSuccess);
  ASSERT_EQ(device().FreeAsync(ptr, a), Status::kSuccess);
  EXPECT_EQ(device().MemsetAsync(ptr, 1, kMiB, a), Status::kInvalidValue);
  EXPECT_EQ(device().StreamSynchronize(a), Status::kSuccess);
}

TEST_F(SimPoolOrderTest, FreeAsyncOfImmediateMemoryWaitsForItsStream) {  // P2
  const Stream a = NewStream();
  DevicePtr ptr = 0;
  ASSERT_EQ(device().MemAlloc(&ptr, kMiB), Status::kSuccess);
  ASSERT_EQ(device().MemsetAsync(ptr, 1, kMiB, a), Status::kSuccess);
  ASSERT_EQ(device().FreeAsync(ptr, a), Status::kSuccess);
  EXPECT_EQ(device().PendingCount(), 0u);
  EXPECT_EQ(device().Synchronize(), Status::kSuccess);
}

TEST_F(SimPoolOrderTest, MemoryForMappingIsFoundInIdlePools) {  // P12
  const Stream a = NewStream();
  ASSERT_EQ(device().FreeAsync(Alloc(a), a), Status::kSuccess);
  ASSERT_EQ(device().StreamQuery(a), Status::kNotReady);
  MemHandle handle;
  const std::size_t all = kFrames * kFrameBytes;
  EXPECT_EQ(device().CreateMemory(&handle, all, {}), Status::kMemoryAllocation);
  Set(PoolAttribute::kReleaseThreshold, UINT64_MAX);
  ASSERT_EQ(device().StreamSynchronize(a), Status::kSuccess);
  ASSERT_EQ(device().CreateMemory(&handle, all, {}), Status::kSuccess);
  EXPECT_EQ(device().ReleaseMemory(handle), Status::kSuccess);
}

}  // namespace
}  // namespace strata::sim
