#include <gtest/gtest.h>

#include <cstdint>
#include <set>
#include <thread>
#include <vector>

#include "strata/tests/platform/sim/device/sim_fixture.h"
#include "strata/tests/testing/at_thread_end.h"

namespace strata::sim {
namespace {

class SimDeviceStreamsTest : public SimFixture {};

TEST_F(SimDeviceStreamsTest, EventThatWasNeverRecordedIsComplete) {  // T1
  const Event event = NewEvent();
  EXPECT_EQ(device().EventQuery(event), Status::kSuccess);
  EXPECT_EQ(device().EventSynchronize(event), Status::kSuccess);
  EXPECT_EQ(device().StreamWaitEvent(NewStream(), event, 0), Status::kSuccess);
}

TEST_F(SimDeviceStreamsTest, RecordedEventIsCompleteAndStaysSo) {  // T2, T3
  const Event event = NewEvent();
  const Stream stream = NewStream();
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(device().EventRecord(event, stream, 0), Status::kSuccess);
    EXPECT_EQ(device().EventQuery(event), Status::kSuccess);
  }
}

TEST_F(SimDeviceStreamsTest, RecordRefusesAnEventOfAnotherDevice) {  // T4
  EXPECT_EQ(device(0).EventRecord(NewEvent(1), NewStream(0), 0),
            Status::kInvalidResourceHandle);
  EXPECT_EQ(device(0).EventRecord(NewEvent(0), NewStream(1), 0),
            Status::kInvalidResourceHandle);
}

TEST_F(SimDeviceStreamsTest, WaitTakesAnEventOfAnotherDevice) {  // T12, E4
  const Event event = NewEvent(1);
  ASSERT_EQ(device(1).EventRecord(event, device(1).LegacyStream(), 0),
            Status::kSuccess);
  EXPECT_EQ(device(0).StreamWaitEvent(NewStream(0), event, 0),
            Status::kSuccess);
  EXPECT_EQ(device(0).EventQuery(event), Status::kSuccess);
}

TEST_F(SimDeviceStreamsTest, EventOutlivesTheStreamItWasRecordedOn) {  // T7
  const Event event = NewEvent();
  const Stream stream = NewStream();
  ASSERT_EQ(device().EventRecord(event, stream, 0), Status::kSuccess);
  ASSERT_EQ(device().StreamDestroy(stream), Status::kSuccess);
  EXPECT_EQ(device().EventQuery(event), Status::kSuccess);
  EXPECT_EQ(device().EventDestroy(event), Status::kSuccess);  // T8
}

TEST_F(SimDeviceStreamsTest, DestroyedStreamIsRefusedEverywhere) {
  const Stream stream = NewStream();
  const Event event = NewEvent();
  const DevicePtr ptr = Alloc(64);
  ASSERT_EQ(device().StreamDestroy(stream), Status::kSuccess);
  const Status refused = Status::kInvalidResourceHandle;
  EXPECT_EQ(device().StreamDestroy(stream), refused);
  EXPECT_EQ(device().StreamQuery(stream), refused);
  EXPECT_EQ(device().StreamSynchronize(stream), refused);
  EXPECT_EQ(device().StreamWaitEvent(stream, event, 0), refused);
  EXPECT_EQ(device().EventRecord(event, stream, 0), refused);
  EXPECT_EQ(device().MemsetAsync(ptr, 0, 64, stream), refused);
  EXPECT_EQ(device().LaunchHostFunc(
                stream, [](void*) {}, nullptr),
            refused);
  Stream wrapped;
  EXPECT_EQ(device().WrapStream(stream.handle, &wrapped), refused);
  EXPECT_EQ(wrapped.uid, 0u);
}

TEST_F(SimDeviceStreamsTest, HandlesAreRecycledAndUidsAreNot) {  // T9
  const Stream first = NewStream();
  ASSERT_EQ(device().StreamDestroy(first), Status::kSuccess);
  const Stream second = NewStream();
  EXPECT_EQ(second.handle, first.handle);
  EXPECT_NE(second.uid, first.uid);
  EXPECT_FALSE(second == first);
  EXPECT_EQ(device().StreamQuery(second), Status::kSuccess);
  EXPECT_EQ(device().StreamQuery(first), Status::kInvalidResourceHandle);
  EXPECT_EQ(device().StreamDestroy(first), Status::kInvalidResourceHandle);
}

TEST_F(SimDeviceStreamsTest, UidsDifferBetweenPlatforms) {
  SimPlatform other(SimOptions(1, 1));
  Stream stream;
  ASSERT_EQ(other.sim_device(0).StreamCreate(&stream, 0), Status::kSuccess);
  EXPECT_NE(stream.uid, NewStream().uid);
}

TEST_F(SimDeviceStreamsTest, SynchronisingCallsSucceed) {  // T10
  const Stream stream = NewStream();
  EXPECT_EQ(device().StreamQuery(stream), Status::kSuccess);
  EXPECT_EQ(device().StreamSynchronize(stream), Status::kSuccess);
  EXPECT_EQ(device().Synchronize(), Status::kSuccess);
  EXPECT_EQ(device().StreamSynchronize(device().LegacyStream()),
            Status::kSuccess);
}

TEST_F(SimDeviceStreamsTest, CreateRefusesWrongArguments) {
  Stream stream;
  EXPECT_EQ(device().StreamCreate(nullptr, 0), Status::kInvalidValue);
  EXPECT_EQ(device().StreamCreate(&stream, 2), Status::kInvalidValue);
  EXPECT_EQ(stream.uid, 0u);
  Event event;
  EXPECT_EQ(device().EventCreate(nullptr, 0), Status::kInvalidValue);
  EXPECT_EQ(device().EventCreate(&event, 8), Status::kInvalidValue);
  // E7: an interprocess event cannot time.
  EXPECT_EQ(device().EventCreate(&event, kEventInterprocess),
            Status::kInvalidValue);
  EXPECT_FALSE(event);
  EXPECT_EQ(
      device().EventCreate(&event, kEventInterprocess | kEventDisableTiming),
      Status::kSuccess);
}

TEST_F(SimDeviceStreamsTest, ExternalFlagIsForCapturesOnly) {  // E9
  const Event event = NewEvent();
  const Stream stream = NewStream();
  EXPECT_EQ(device().EventRecord(event, stream, kEventExternal),
            Status::kInvalidValue);
  EXPECT_EQ(device().StreamWaitEvent(stream, event, kEventExternal),
            Status::kInvalidValue);
}

TEST_F(SimDeviceStreamsTest, DestroyedEventIsRefusedEverywhere) {
  const Event event = NewEvent();
  ASSERT_EQ(device().EventDestroy(event), Status::kSuccess);
  const Event fresh = NewEvent();
  EXPECT_FALSE(fresh == event);
  const Event unknown{reinterpret_cast<void*>(0x10)};
  for (const Event& gone : {event, unknown, Event{}}) {
    const Status refused = Status::kInvalidResourceHandle;
    EXPECT_EQ(device().EventDestroy(gone), refused);
    EXPECT_EQ(device().EventQuery(gone), refused);
    EXPECT_EQ(device().EventSynchronize(gone), refused);
    EXPECT_EQ(device().EventRecord(gone, NewStream(), 0), refused);
    EXPECT_EQ(device().StreamWaitEvent(NewStream(), gone, 0), refused);
  }
}

TEST_F(SimDeviceStreamsTest, LegacyStreamIsKeyedByItsDevice) {
  const Stream legacy = device(0).LegacyStream();
  EXPECT_EQ(legacy.uid, kLegacyStreamUid);
  EXPECT_EQ(legacy.handle, reinterpret_cast<void*>(0x1));
  EXPECT_FALSE(legacy == device(1).LegacyStream());
  EXPECT_EQ(device(0).StreamQuery(legacy), Status::kSuccess);
  EXPECT_EQ(device(1).StreamQuery(legacy), Status::kInvalidResourceHandle);
  EXPECT_EQ(device(0).StreamDestroy(legacy), Status::kInvalidResourceHandle);
}

TEST_F(SimDeviceStreamsTest, PerThreadStreamLastsAsLongAsItsThread) {
  Stream before;
  Stream after;
  std::thread([&] {
    AtThreadEnd([&] {
      after = device(1).PerThreadStream();
      EXPECT_NE(device(0).PerThreadStream(), after);
      EXPECT_EQ(device(1).StreamQuery(after), Status::kSuccess);
    });
    before = device(1).PerThreadStream();
  }).join();
  EXPECT_EQ(after, before);
}

TEST_F(SimDeviceStreamsTest, PerThreadStreamDiffersByThreadAndDevice) {
  std::set<std::uint64_t> uids;
  const auto add = [&] {
    for (const int ordinal : {0, 1}) {
      const Stream mine = device(ordinal).PerThreadStream();
      EXPECT_EQ(mine.handle, reinterpret_cast<void*>(0x2));
      EXPECT_EQ(mine, device(ordinal).PerThreadStream());
      EXPECT_EQ(device(ordinal).StreamQuery(mine), Status::kSuccess);
      uids.insert(mine.uid);
    }
  };
  add();
  std::thread(add).join();
  std::thread(add).join();
  EXPECT_EQ(uids.size(), 6u);
  EXPECT_EQ(device(1).StreamQuery(device(0).PerThreadStream()),
            Status::kInvalidResourceHandle);
  EXPECT_EQ(device(0).StreamDestroy(device(0).PerThreadStream()),
            Status::kInvalidResourceHandle);
}

// Its handle names the caller's own stream, as in CUDA.
TEST_F(SimDeviceStreamsTest, PerThreadStreamOfAnotherThreadIsRefused) {
  Stream other;
  std::thread([&] { other = device(0).PerThreadStream(); }).join();
  EXPECT_EQ(device(0).StreamQuery(other), Status::kInvalidResourceHandle);
  EXPECT_EQ(device(0).StreamSynchronize(other), Status::kInvalidResourceHandle);
  EXPECT_FALSE(device(0).CanName(other));
  EXPECT_TRUE(device(0).CanName(device(0).PerThreadStream()));
  EXPECT_TRUE(device(0).CanName(device(0).LegacyStream()));
}

TEST_F(SimDeviceStreamsTest, WrapFillsInDeviceAndUid) {
  const Stream created = NewStream(1);
  Stream wrapped;
  ASSERT_EQ(device(1).WrapStream(created.handle, &wrapped), Status::kSuccess);
  EXPECT_EQ(wrapped, created);
  EXPECT_EQ(wrapped.handle, created.handle);
  for (void* handle :
       {static_cast<void*>(nullptr), reinterpret_cast<void*>(0x1)}) {
    ASSERT_EQ(device(1).WrapStream(handle, &wrapped), Status::kSuccess);
    EXPECT_EQ(wrapped, device(1).LegacyStream());
  }
  ASSERT_EQ(device(1).WrapStream(reinterpret_cast<void*>(0x2), &wrapped),
            Status::kSuccess);
  EXPECT_EQ(wrapped, device(1).PerThreadStream());
}

// A checker may know the stream only from this call.
TEST_F(SimDeviceStreamsTest, WrapTellsObserversTheFlags) {
  CallRecord seen;
  device().SetCallObserver([&](const CallRecord& call) { seen = call; });
  for (const unsigned flags : {0u, unsigned{kStreamNonBlocking}}) {
    Stream created;
    ASSERT_EQ(device().StreamCreate(&created, flags), Status::kSuccess);
    Stream wrapped;
    ASSERT_EQ(device().WrapStream(created.handle, &wrapped), Status::kSuccess);
    EXPECT_EQ(seen.call, DeviceCall::kWrapStream);
    EXPECT_EQ(seen.value, flags);
  }
}

TEST_F(SimDeviceStreamsTest, WrapRefusesUnknownHandles) {
  const Stream elsewhere = NewStream(1);
  Stream wrapped;
  EXPECT_EQ(device(0).WrapStream(elsewhere.handle, &wrapped),
            Status::kInvalidResourceHandle);
  EXPECT_EQ(device(0).WrapStream(reinterpret_cast<void*>(0x3), &wrapped),
            Status::kInvalidResourceHandle);
  EXPECT_EQ(wrapped.uid, 0u);
  EXPECT_EQ(device(0).WrapStream(nullptr, nullptr), Status::kInvalidValue);
}

TEST_F(SimDeviceStreamsTest, StreamOfNoDeviceIsRefused) {
  EXPECT_EQ(device().StreamQuery(Stream{}), Status::kInvalidResourceHandle);
}

struct HostCall {
  SimDevice* device = nullptr;
  Stream stream;
  int runs = 0;
  Status alloc = Status::kSuccess;
  Status nested = Status::kSuccess;
  Status elsewhere = Status::kUnknown;
};

void CallDevice(void* argument) {
  auto* call = static_cast<HostCall*>(argument);
  ++call->runs;
  DevicePtr ptr = 0;
  call->alloc = call->device->MemAlloc(&ptr, 512);
  call->nested = call->device->LaunchHostFunc(call->stream, &CallDevice, call);
  std::thread([call] {
    call->elsewhere = call->device->StreamQuery(call->stream);
  }).join();
}

TEST_F(SimDeviceStreamsTest, HostFunctionRunsAndMayNotCallTheDevice) {  // T11
  HostCall call;
  call.device = &device();
  call.stream = NewStream();
  EXPECT_EQ(device().LaunchHostFunc(call.stream, &CallDevice, &call),
            Status::kSuccess);
  EXPECT_EQ(call.runs, 1);
  EXPECT_EQ(call.alloc, Status::kNotPermitted);
  EXPECT_EQ(call.nested, Status::kNotPermitted);
  // Another thread may call, and sees that the stream is still at the function.
  EXPECT_EQ(call.elsewhere, Status::kNotReady);
  EXPECT_EQ(device().StreamQuery(call.stream), Status::kSuccess);
  EXPECT_EQ(device().Leaks().allocations, 0u);
  EXPECT_NE(Alloc(512), 0u);
  EXPECT_EQ(device().LaunchHostFunc(call.stream, nullptr, nullptr),
            Status::kInvalidValue);
}

}  // namespace
}  // namespace strata::sim
