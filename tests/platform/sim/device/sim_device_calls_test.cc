// Properties of all entry points of the simulated device: counts, costs,
// injected failures, observers, and no call with a lock held.

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "strata/platform/locks/spin_lock.h"
#include "strata/platform/sim/faults/cost_table.h"
#include "strata/tests/platform/sim/device/sim_calls.h"
#include "strata/tests/platform/sim/device/sim_fixture.h"

namespace strata::sim {
namespace {

class SimDeviceCallsTest : public SimFixture {
 protected:
  void SetUp() override { ASSERT_TRUE(PrepareWorld(&world_)); }

  void TearDown() override {
    device().SetCallObserver(nullptr);  // it refers to variables of the test
    // world_ owns the registered bytes; a platform only records them.
    device().HostUnregister(world_.memory.data());
    device().HostUnregister(world_.spare.data());
    CloseWorld(&world_);
  }

  SimCallWorld world_{&device()};
};

TEST_F(SimDeviceCallsTest, EveryCallIsCountedObservedAndCharged) {
  std::vector<CallRecord> seen;
  device().SetCallObserver(
      [&](const CallRecord& call) { seen.push_back(call); });
  for (const SimCallCase& c : SimCallCases()) {
    SCOPED_TRACE(DeviceCallName(c.call));
    const std::uint64_t count = device().CallCount(c.call);
    const std::uint64_t ns = device().modelled_ns();
    seen.clear();
    EXPECT_EQ(c.run(&world_), Status::kSuccess);
    EXPECT_EQ(device().CallCount(c.call), count + 1);
    EXPECT_GT(device().modelled_ns(), ns);
    ASSERT_EQ(seen.size(), 1u);
    EXPECT_EQ(seen[0].call, c.call);
    EXPECT_EQ(seen[0].status, Status::kSuccess);
  }
}

TEST_F(SimDeviceCallsTest, EveryEntryPointHasACaseAndACost) {
  std::vector<bool> covered(kDeviceCallCount, false);
  for (const SimCallCase& c : SimCallCases()) {
    covered[static_cast<std::size_t>(c.call)] = true;
  }
  for (std::size_t i = 0; i < kDeviceCallCount; ++i) {
    const auto call = static_cast<DeviceCall>(i);
    EXPECT_NE(FindCallCost(call), nullptr) << DeviceCallName(call);
    EXPECT_TRUE(covered[i]) << DeviceCallName(call);
  }
}

TEST_F(SimDeviceCallsTest, InjectedFailureHasNoOtherEffect) {  // T85
  // Each call also fails between other successful calls, so it runs in every
  // state of the scenario.
  for (const SimCallCase& c : SimCallCases()) {
    SCOPED_TRACE(DeviceCallName(c.call));
    const std::size_t free_before = FreeBytes();
    const SimLeaks leaks = device().Leaks();
    const std::uint64_t ns = device().modelled_ns();
    const std::uint64_t count = device().CallCount(c.call);
    const SimCallWorld before = world_;
    const std::vector<char> managed(
        reinterpret_cast<char*>(world_.managed),
        reinterpret_cast<char*>(world_.managed) + 4096);

    FaultRule rule;
    rule.call = c.call;
    rule.status = Status::kIllegalState;
    device().AddFault(rule);
    EXPECT_EQ(c.run(&world_), Status::kIllegalState);
    device().ClearFaults();

    EXPECT_EQ(device().CallCount(c.call), count + 1);
    EXPECT_EQ(device().modelled_ns(), ns);
    EXPECT_EQ(device().Leaks(), leaks);
    EXPECT_EQ(FreeBytes(), free_before);
    EXPECT_EQ(world_.free_bytes, before.free_bytes);
    EXPECT_EQ(world_.new_stream, before.new_stream);
    EXPECT_EQ(world_.new_event, before.new_event);
    EXPECT_EQ(world_.new_ptr, before.new_ptr);
    EXPECT_EQ(world_.new_pinned, before.new_pinned);
    EXPECT_EQ(world_.info.device, before.info.device);
    EXPECT_EQ(world_.can, before.can);
    EXPECT_EQ(world_.granularity, before.granularity);
    EXPECT_EQ(world_.new_range, before.new_range);
    EXPECT_EQ(world_.new_handle, before.new_handle);
    EXPECT_EQ(world_.retained, before.retained);
    EXPECT_EQ(world_.imported, before.imported);
    EXPECT_EQ(world_.new_exported.fd, before.new_exported.fd);
    EXPECT_EQ(world_.access, before.access);
    EXPECT_EQ(world_.new_pool, before.new_pool);
    EXPECT_EQ(world_.new_value, before.new_value);
    EXPECT_EQ(world_.new_shared.fd, before.new_shared.fd);
    EXPECT_EQ(world_.mode, before.mode);
    EXPECT_EQ(world_.capture_status, before.capture_status);
    EXPECT_EQ(world_.capture_info.id, before.capture_info.id);
    EXPECT_EQ(world_.new_graph, before.new_graph);
    EXPECT_EQ(world_.captured_graph, before.captured_graph);
    EXPECT_EQ(world_.exec, before.exec);
    EXPECT_EQ(world_.new_object, before.new_object);
    EXPECT_EQ(world_.graph_bytes, before.graph_bytes);
    EXPECT_EQ(world_.predecessors, before.predecessors);
    EXPECT_EQ(world_.host_function_runs, before.host_function_runs);
    EXPECT_TRUE(std::equal(managed.begin(), managed.end(),
                           reinterpret_cast<char*>(world_.managed)));
    // A failed call succeeds when it is repeated: it had no effect.
    EXPECT_EQ(c.run(&world_), Status::kSuccess);
  }
}

TEST_F(SimDeviceCallsTest, FaultCountsTheCallsFromWhenItWasAdded) {
  FaultRule rule;
  rule.call = DeviceCall::kMemAlloc;
  rule.nth = 2;
  rule.min_bytes = 1000;
  device().AddFault(rule);
  DevicePtr ptr = 0;
  EXPECT_EQ(device().MemAlloc(&ptr, 1000), Status::kSuccess);
  EXPECT_EQ(device().MemAlloc(&ptr, 999), Status::kSuccess);
  EXPECT_EQ(device().MemAlloc(&ptr, 1000), Status::kMemoryAllocation);
  EXPECT_EQ(device().MemAlloc(&ptr, 1000), Status::kSuccess);
  rule.every = 3;
  EXPECT_THROW(device().AddFault(rule), std::invalid_argument);
}

TEST_F(SimDeviceCallsTest, ObserverSeesOperandsOrderAndFailures) {
  std::vector<CallRecord> seen;
  device().SetCallObserver(
      [&](const CallRecord& call) { seen.push_back(call); });
  DevicePtr ptr = 0;
  ASSERT_EQ(device().MemAlloc(&ptr, 3000), Status::kSuccess);
  ASSERT_EQ(device().MemsetAsync(ptr, 0xAB, 3000, world_.stream),
            Status::kSuccess);
  ASSERT_EQ(device().MemcpyAsync(world_.managed, ptr, 16, world_.stream),
            Status::kSuccess);
  ASSERT_EQ(device().EventRecord(world_.event, world_.stream, 0),
            Status::kSuccess);
  ASSERT_EQ(device().MemFree(ptr + 1), Status::kInvalidValue);
  ASSERT_EQ(seen.size(), 5u);
  EXPECT_EQ(seen[0].call, DeviceCall::kMemAlloc);
  EXPECT_EQ(seen[0].ptr, ptr);
  EXPECT_EQ(seen[0].bytes, 3000u);
  EXPECT_EQ(seen[1].value, 0xABu);
  EXPECT_EQ(seen[1].stream_uid, world_.stream.uid);
  EXPECT_EQ(seen[2].ptr, world_.managed);
  EXPECT_EQ(seen[2].value, ptr);
  EXPECT_EQ(seen[3].ptr, reinterpret_cast<std::uintptr_t>(world_.event.value));
  EXPECT_EQ(seen[3].stream_uid, world_.stream.uid);
  EXPECT_EQ(seen[4].call, DeviceCall::kMemFree);
  EXPECT_EQ(seen[4].ptr, ptr + 1);
  EXPECT_EQ(seen[4].status, Status::kInvalidValue);
  device().SetCallObserver(nullptr);
  ASSERT_EQ(device().Synchronize(), Status::kSuccess);
  EXPECT_EQ(seen.size(), 5u);
}

// With a lock held, this would deadlock.
TEST_F(SimDeviceCallsTest, AddedObserversAreToldBesideTheOneThatIsSet) {
  int set = 0;
  auto added = std::make_shared<int>(0);
  std::size_t free_bytes = 0;
  EXPECT_FALSE(device().observed_for_life());
  device().SetCallObserver([&](const CallRecord&) { ++set; });
  EXPECT_FALSE(device().observed_for_life());
  device().AddCallObserver([added](const CallRecord&) { ++*added; });
  device().AddCallObserver([added](const CallRecord&) { ++*added; });
  EXPECT_TRUE(device().observed_for_life());
  device().MemGetInfo(&free_bytes, &free_bytes);
  device().SetCallObserver(nullptr);
  EXPECT_TRUE(device().observed());
  device().MemGetInfo(&free_bytes, &free_bytes);
  EXPECT_EQ(set, 1);
  EXPECT_EQ(*added, 4);
}

TEST_F(SimDeviceCallsTest, ObserverMayCallTheDevice) {
  std::size_t free_seen = 0;
  device().SetCallObserver([&](const CallRecord& call) {
    if (call.call != DeviceCall::kMemAlloc) return;
    free_seen = FreeBytes();
    device().SetCallObserver(nullptr);
  });
  Alloc(4 * kFrameBytes);
  EXPECT_EQ(free_seen, FreeBytes());
  EXPECT_NE(free_seen, 0u);
}

TEST_F(SimDeviceCallsTest, ObserverMayChangeWhileOthersCall) {
  std::atomic<bool> stop{false};
  std::atomic<std::uint64_t> seen{0};
  std::thread caller([&] {
    while (!stop.load()) device().Synchronize();
  });
  for (int i = 0; i < 200; ++i) {
    device().SetCallObserver([&](const CallRecord&) { ++seen; });
    while (seen.load() == 0) std::this_thread::yield();
    device().SetCallObserver(nullptr);
  }
  stop.store(true);
  caller.join();
  EXPECT_GT(seen.load(), 0u);
}

TEST_F(SimDeviceCallsTest, AllocationIsChargedForTheFramesItTakes) {
  const auto cost = [&](std::size_t bytes) {
    const std::uint64_t before = device().modelled_ns();
    Alloc(bytes);
    return device().modelled_ns() - before;
  };
  // world_ already occupies a shared frame.
  EXPECT_EQ(cost(4096), 44000u);
  EXPECT_EQ(cost(kFrameBytes), 44180u);
  EXPECT_EQ(cost(3 * kFrameBytes), 44540u);
}

using SimDeviceDeathTest = SimDeviceCallsTest;

TEST_F(SimDeviceDeathTest, CallWithALockHeldAborts) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  for (const SimCallCase& c : SimCallCases()) {
    if (c.call != DeviceCall::kMemAlloc && c.call != DeviceCall::kEventQuery) {
      continue;
    }
    SpinLock lock;
    EXPECT_DEATH(
        {
          lock.lock();
          c.run(&world_);
        },
        std::string(DeviceCallName(c.call)) + " called with 1 lock");
  }
}

TEST_F(SimDeviceCallsTest, EventsAreNotCounted) {
  device().AddCallObserver([](const CallRecord&) {});
  for (const DeviceCall event :
       {DeviceCall::kUse, DeviceCall::kBlockAlloc, DeviceCall::kBlockFree,
        DeviceCall::kBlockMark, DeviceCall::kHostRelease,
        DeviceCall::kHostAcquire, DeviceCall::kDependency}) {
    CallRecord note;
    note.call = event;
    device().Note(note);
    EXPECT_EQ(device().CallCount(event), 0u) << DeviceCallName(event);
  }
}

}  // namespace
}  // namespace strata::sim
