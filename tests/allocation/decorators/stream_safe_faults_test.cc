// Every device call of the stream-safe layer fails: nothing leaks, no memory is
// reused early, and no state remains.

#include <gtest/gtest.h>

#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "strata/allocation/decorators/stream_safe_allocator.h"
#include "strata/tests/allocation/decorators/stream_safe_fixture.h"

namespace strata {
namespace {

struct Fault {
  DeviceCall call;
  bool cross_stream_wait;
};

std::ostream& operator<<(std::ostream& out, const Fault& fault) {
  return out << DeviceCallName(fault.call)
             << (fault.cross_stream_wait ? "_waiting" : "");
}

class StreamSafeFaultsTest : public StreamSafeFixture,
                             public ::testing::WithParamInterface<Fault> {
 protected:
  StreamSafeFaultsTest() : StreamSafeFixture(GetParam().cross_stream_wait) {}
};

// Memory that a_ still uses is never allocated while its work is pending,
// unless a wait was inserted on the device.
TEST_P(StreamSafeFaultsTest, NothingIsReusedEarly) {
  AllocationPtr allocation = Marked({a_});
  const void* const data = allocation->data();
  Work(a_);
  FailAlways(GetParam().call);
  allocation.reset();
  AllocationPtr other = layer().Allocate(kBytes);
  if (other->data() == data) {
    EXPECT_TRUE(GetParam().cross_stream_wait);
    Work(own());
    EXPECT_FALSE(device().Step(own()));
  }
  device().ClearFaults();
  device().StepAll();
}

TEST_P(StreamSafeFaultsTest, NothingIsLostOnceTheDeviceRecovers) {
  std::vector<AllocationPtr> held;
  for (int i = 0; i < 100; ++i) held.push_back(Marked({a_, b_}));
  Work(a_);
  Work(b_);
  FailAlways(GetParam().call);
  held.clear();
  const AllocationPtr other = layer().Allocate(kBytes);
  device().ClearFaults();
  device().StepAll();
  place_.frees()->Drain();
  place_.frees()->Drain();
  EXPECT_FALSE(place_.frees()->any());
}

TEST_P(StreamSafeFaultsTest, ADestroyedStreamIsNotForgotten) {
  AllocationPtr early = Marked({a_});
  AllocationPtr late = Marked({a_});
  Work(a_);
  early.reset();
  FailAlways(GetParam().call);
  layer().StreamDestroyed(a_);
  device().ClearFaults();
  EXPECT_EQ(device().StreamDestroy(a_), Status::kSuccess);
  late.reset();
  if (device().PendingCount() != 0) {
    EXPECT_EQ(place_.frees()->Drain(), 0U);
  }
  EXPECT_EQ(place_.frees()->Await() != 0 || !place_.frees()->any(), true);
  EXPECT_FALSE(place_.frees()->any());
  EXPECT_EQ(device().PendingCount(), 0U);
}

TEST_P(StreamSafeFaultsTest, ExhaustionEndsWithTheMemoryOrWithAnError) {
  AllocationPtr big = layer().Allocate(Mebibytes(800));
  EXPECT_TRUE(layer().RecordStream(big.get(), a_));
  Work(a_);
  big.reset();
  FailAlways(GetParam().call);
  Failure failure;
  const AllocationPtr other =
      layer().AllocateOrNull(Request{Mebibytes(600)}, failure);
  // If the host may wait for the stream, no event is needed.
  ASSERT_NE(other, nullptr);
  EXPECT_EQ(device().PendingCount() == 0 || GetParam().cross_stream_wait, true);
  device().ClearFaults();
}

INSTANTIATE_TEST_SUITE_P(
    Calls, StreamSafeFaultsTest,
    ::testing::Values(Fault{DeviceCall::kEventCreate, false},
                      Fault{DeviceCall::kEventRecord, false},
                      Fault{DeviceCall::kEventQuery, false},
                      Fault{DeviceCall::kEventSynchronize, false},
                      Fault{DeviceCall::kStreamSynchronize, false},
                      Fault{DeviceCall::kEventCreate, true},
                      Fault{DeviceCall::kEventRecord, true},
                      Fault{DeviceCall::kEventQuery, true},
                      Fault{DeviceCall::kStreamWaitEvent, true}),
    ::testing::PrintToStringParamName());

using StreamSafeQuarantineTest = StreamSafeFixture;

// When every call that could prove completion fails, memory stays deferred.
TEST_F(StreamSafeQuarantineTest, WhatCannotBeProvenDoneStays) {
  AllocationPtr big = layer().Allocate(Mebibytes(800));
  EXPECT_TRUE(layer().RecordStream(big.get(), a_));
  Work(a_);
  for (const DeviceCall call :
       {DeviceCall::kEventRecord, DeviceCall::kStreamSynchronize,
        DeviceCall::kSynchronize}) {
    FailAlways(call);
  }
  big.reset();
  Failure failure;
  EXPECT_EQ(layer().AllocateOrNull(Request{Mebibytes(600)}, failure), nullptr);
  EXPECT_TRUE(failure.IsExhaustion());
  EXPECT_EQ(place_.frees()->deferred().blocks, 1U);
  device().ClearFaults();
  EXPECT_NE(layer().AllocateOrNull(Request{Mebibytes(600)}, failure), nullptr);
}

}  // namespace
}  // namespace strata
