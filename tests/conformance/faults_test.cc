// Missing memory, sticky errors, and injected failures: cuda_semantics.md §6.4
// and T64, T71, T75, T85, T86.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "strata/platform/sim/device/sim_device.h"
#include "strata/platform/sim/faults/fault_injector.h"
#include "strata/tests/testing/devices/faulted_state.h"
#include "strata/tests/testing/devices/virtual_memory_fixture.h"

namespace strata {
namespace {

// Work without access to its memory breaks a GPU for the whole process.
class StickyErrorConformanceTest : public VirtualMemoryFixture {
 protected:
  void SetUp() override {
    VirtualMemoryFixture::SetUp();
    if (IsSkipped()) return;
    STRATA_REQUIRE(sim() != nullptr, kNeedsSimulation);
  }

  // Expects that device 0 is broken.
  void ExpectIllegalAddress() {
    EXPECT_EQ(device().Synchronize(), Status::kIllegalAddress);
    GiveUpDevices();
  }

  // Makes device 0 write to a mapping without access.
  void SpoilDevice(const Stream& stream) {
    Write(NewMapping(granule()), granule(), kFirst, stream);
    ExpectIllegalAddress();
  }
};

INSTANTIATE_TEST_SUITE_P(Devices, StickyErrorConformanceTest,
                         ::testing::ValuesIn(AllDevices()), NameOfDevice);

TEST_P(StickyErrorConformanceTest, T64WorkNeedsAccess) {
  const DevicePtr range = NewMapping(granule());
  const Stream stream = NewStream();
  Read(range, granule(), stream);
  ExpectIllegalAddress();
}

TEST_P(StickyErrorConformanceTest, T71WorkNeedsTheRightToWrite) {
  const DevicePtr range = NewMapping(granule());
  Allow(range, granule(), Access::kRead);
  const Stream stream = NewStream();
  Write(range, granule(), kFirst, stream);
  ExpectIllegalAddress();
}

TEST_P(StickyErrorConformanceTest, RuleH13WorkNeedsPeerAccess) {
  STRATA_REQUIRE(HasTwoDevices(), kNeedsTwoDevices);
  const DevicePtr ptr = NewMemory(kBlockBytes, 1);
  const Stream stream = NewStream();
  Write(ptr, kBlockBytes, kFirst, stream);
  ExpectIllegalAddress();
}

// H13: access has one direction.
TEST_P(StickyErrorConformanceTest, RuleH13PeerAccessGoesOneWay) {
  STRATA_REQUIRE(HasTwoDevices(), kNeedsTwoDevices);
  ASSERT_EQ(device(1).EnablePeerAccess(0), Status::kSuccess);
  const DevicePtr ptr = NewMemory(kBlockBytes, 1);
  const Stream stream = NewStream(kStreamNonBlocking, 0);
  Write(ptr, kBlockBytes, kFirst, stream);
  ExpectIllegalAddress();
}

// H13: peer access applies to memory of MemAlloc only.
TEST_P(StickyErrorConformanceTest, RuleH13PeerAccessLeavesMappingsOut) {
  STRATA_REQUIRE(HasTwoDevices(), kNeedsTwoDevices);
  ASSERT_EQ(device(0).EnablePeerAccess(1), Status::kSuccess);
  MemProperties of_second;
  of_second.location.id = 1;
  const DevicePtr range = NewRange(granule());
  Map(range, granule(), NewHandle(granule(), of_second));
  Allow(range, granule(), Access::kReadWrite, 1);
  const Stream stream = NewStream(kStreamNonBlocking, 0);
  Write(range, granule(), kFirst, stream);
  ExpectIllegalAddress();
}

// P10: nor does it apply to memory of pools.
TEST_P(StickyErrorConformanceTest, RuleP10PeerAccessLeavesPoolsOut) {
  STRATA_REQUIRE(HasTwoDevices(), kNeedsTwoDevices);
  ASSERT_EQ(device(0).EnablePeerAccess(1), Status::kSuccess);
  MemPool pool;
  ASSERT_EQ(device(1).DefaultMemPool(&pool), Status::kSuccess);
  DevicePtr ptr = 0;
  ASSERT_EQ(device(1).MallocFromPoolAsync(&ptr, kBlockBytes, pool,
                                          device(1).LegacyStream()),
            Status::kSuccess);
  ASSERT_EQ(device(1).Synchronize(), Status::kSuccess);
  const Stream stream = NewStream(kStreamNonBlocking, 0);
  Write(ptr, kBlockBytes, kFirst, stream);
  ExpectIllegalAddress();
}

TEST_P(StickyErrorConformanceTest, T75UnmappedUnderPendingWork) {
  STRATA_REQUIRE(CanHold(), kNeedsPending);
  const DevicePtr range = NewRange(granule());
  ASSERT_EQ(device().MapRange(range, granule(), 0, NewHandle(granule())),
            Status::kSuccess);
  Allow(range, granule());
  const Stream stream = NewStream();
  LongWork(stream);
  Write(range, granule(), kFirst, stream);
  ASSERT_EQ(device().UnmapRange(range, granule()), Status::kSuccess);
  ExpectIllegalAddress();
}

// H4: the same calls are correct with the wait that the caller owes.
TEST_P(StickyErrorConformanceTest, T75UnmappedAfterTheWork) {
  const DevicePtr range = NewRange(granule());
  ASSERT_EQ(device().MapRange(range, granule(), 0, NewHandle(granule())),
            Status::kSuccess);
  Allow(range, granule());
  const Stream stream = NewStream();
  LongWork(stream);
  Write(range, granule(), kFirst, stream);
  ASSERT_EQ(device().StreamSynchronize(stream), Status::kSuccess);
  ASSERT_EQ(device().UnmapRange(range, granule()), Status::kSuccess);
  EXPECT_EQ(device().Synchronize(), Status::kSuccess);
}

// H7: every later call fails, on any object.
TEST_P(StickyErrorConformanceTest, RuleH7EveryLaterCallFails) {
  const Event event = NewEvent();
  const Stream stream = NewStream();
  const DevicePtr ptr = NewMemory(kBlockBytes);
  SpoilDevice(stream);
  const Status spoilt = Status::kIllegalAddress;
  std::size_t free_bytes = 0;
  std::size_t total_bytes = 0;
  DevicePtr fresh = 77;
  EXPECT_EQ(device().MemGetInfo(&free_bytes, &total_bytes), spoilt);
  EXPECT_EQ(device().MemAlloc(&fresh, kBlockBytes), spoilt);
  EXPECT_EQ(fresh, 77u);
  EXPECT_EQ(device().MemsetAsync(ptr, 0, kBlockBytes, stream), spoilt);
  EXPECT_EQ(device().EventRecord(event, stream, 0), spoilt);
  EXPECT_EQ(device().EventQuery(event), spoilt);
  EXPECT_EQ(device().StreamSynchronize(stream), spoilt);
  EXPECT_EQ(device().MemFree(ptr), spoilt);
}

TEST_P(StickyErrorConformanceTest, RuleH7OtherDevicesAreSpared) {
  STRATA_REQUIRE(HasTwoDevices(), kNeedsTwoDevices);
  const Stream other = NewStream(kStreamNonBlocking, 1);
  SpoilDevice(NewStream());
  EXPECT_EQ(device(1).StreamSynchronize(other), Status::kSuccess);
  EXPECT_EQ(device(1).Synchronize(), Status::kSuccess);
}

// S11: host functions behind the error are not called.
TEST_P(StickyErrorConformanceTest, RuleS11HostFunctionsAreNotCalled) {
  STRATA_REQUIRE(CanHold(), kNeedsPending);
  const DevicePtr range = NewMapping(granule());
  const Stream stream = NewStream();
  int runs = 0;
  LongWork(stream);
  Write(range, granule(), kFirst, stream);
  ASSERT_EQ(
      device().LaunchHostFunc(
          stream, [](void* count) { ++*static_cast<int*>(count); }, &runs),
      Status::kSuccess);
  ExpectIllegalAddress();
  EXPECT_EQ(runs, 0);
}

class InjectionConformanceTest : public VirtualMemoryFixture {
 protected:
  SimDevice& simulated() { return sim()->sim_device(0); }

  // Makes a call, and repeats it if it failed. The failure must have no effect
  // and must not recur. Returns true if the first call failed.
  bool FailsOnce(const std::function<Status()>& call) {
    const FaultedState state(sim());
    const std::string before = state.Snapshot();
    if (call() == Status::kSuccess) return false;
    EXPECT_EQ(before, state.Snapshot());
    EXPECT_EQ(call(), Status::kSuccess);
    return true;
  }

  // An allocation, and a range that grows chunk by chunk. Returns the number of
  // failed calls.
  int GrowAndShrink() {
    constexpr std::size_t kChunks = 3;
    const AccessDescriptor both{{Location::Kind::kDevice, 0},
                                Access::kReadWrite};
    int failed = 0;
    DevicePtr ptr = 0;
    DevicePtr range = 0;
    failed += FailsOnce([&] { return device().MemAlloc(&ptr, kBlockBytes); });
    EXPECT_EQ(device().ReserveRange(&range, kChunks * granule(), 0, 0),
              Status::kSuccess);
    for (std::size_t chunk = 0; chunk < kChunks; ++chunk) {
      const DevicePtr at = range + chunk * granule();
      MemHandle handle;
      failed += FailsOnce([&] {
        return device().CreateMemory(&handle, granule(), MemProperties{});
      });
      failed += FailsOnce(
          [&] { return device().MapRange(at, granule(), 0, handle); });
      failed += FailsOnce(
          [&] { return device().SetAccess(at, granule(), &both, 1); });
      EXPECT_EQ(device().ReleaseMemory(handle), Status::kSuccess);
    }
    EXPECT_EQ(device().UnmapRange(range, kChunks * granule()),
              Status::kSuccess);
    EXPECT_EQ(device().FreeRange(range, kChunks * granule()), Status::kSuccess);
    EXPECT_EQ(device().MemFree(ptr), Status::kSuccess);
    return failed;
  }

  void Inject(DeviceCall call, std::uint64_t nth, Status status) {
    FaultRule rule;
    rule.call = call;
    rule.nth = nth;
    rule.status = status;
    simulated().AddFault(rule);
  }
};

INSTANTIATE_TEST_SUITE_P(Devices, InjectionConformanceTest,
                         ::testing::ValuesIn(SimulatedDevices()), NameOfDevice);

TEST_P(InjectionConformanceTest, T85EachAllocationCallCanFailOnce) {
  const std::size_t before = FreeBytes();
  int failures = 0;
  for (const DeviceCall call :
       {DeviceCall::kMemAlloc, DeviceCall::kCreateMemory, DeviceCall::kMapRange,
        DeviceCall::kSetAccess}) {
    int failed = 1;
    for (std::uint64_t nth = 1; failed != 0; ++nth) {
      Inject(call, nth, Status::kMemoryAllocation);
      failed = GrowAndShrink();
      simulated().ClearFaults();
      EXPECT_LE(failed, 1);
      EXPECT_EQ(FreeBytes(), before);
      failures += failed;
    }
  }
  // One MemAlloc, and three chunks of three calls each.
  EXPECT_EQ(failures, 10);
}

TEST_P(InjectionConformanceTest, T86APollingLoopEndsWithTheInjectedAnswers) {
  constexpr std::uint64_t kTimes = 5;
  const Event event = NewEvent();
  const Stream stream = NewStream();
  ASSERT_EQ(device().EventRecord(event, stream, 0), Status::kSuccess);
  ASSERT_EQ(device().EventSynchronize(event), Status::kSuccess);
  FaultRule rule;
  rule.call = DeviceCall::kEventQuery;
  rule.count = kTimes;
  rule.status = Status::kNotReady;
  simulated().AddFault(rule);
  const std::uint64_t before = device().CallCount(DeviceCall::kEventQuery);
  EXPECT_EQ(PollUntilDone(event), Status::kSuccess);
  EXPECT_EQ(device().CallCount(DeviceCall::kEventQuery) - before, kTimes + 1);
}

}  // namespace
}  // namespace strata
