// Streams that must neither wait on the device nor be waited for there.

#include <gtest/gtest.h>

#include <cstddef>
#include <stdexcept>
#include <string>

#include "strata/base/size.h"
#include "strata/facade/allocator_facade.h"
#include "strata/tests/facade/facade_fixture.h"

namespace strata {
namespace {

// More than half of the device, so that a second block needs the memory of the
// first one.
constexpr std::size_t kBusyBytes = Mebibytes(40);

// The waits that Strata inserted into streams.
std::size_t InsertedWaits(const CallLog& log) {
  return log.Of(DeviceCall::kStreamWaitEvent).size();
}

struct ForbidCase {
  const char* strategy;
  // Whether the block belongs to the stream that wants its memory again, and
  // the other stream marked it. Else it belongs to the other stream.
  bool is_marked;
};

std::string NameOfForbidCase(const testing::TestParamInfo<ForbidCase>& info) {
  return std::string(info.param.strategy) +
         (info.param.is_marked ? "_marked" : "_of_the_other");
}

// Two streams, with waits on the device as far as the streams permit.
class ForbidWaitsTest : public FacadeFixture,
                        public testing::WithParamInterface<ForbidCase> {
 protected:
  ForbidWaitsTest() : FacadeFixture(1, "manual") {
    EXPECT_EQ(device().MemAlloc(&scratch_, 4096), Status::kSuccess);
  }
  ~ForbidWaitsTest() override {
    facade_.reset();
    EXPECT_EQ(device().MemFree(scratch_), Status::kSuccess);
  }

  void SetUp() override {
    Build("allocator_strategy=" + std::string(GetParam().strategy) +
          ",strata_cross_stream_wait");
    // Both streams are in use from here on.
    facade().Alloc(kPlace, 512, worker_).reset();
    facade().Alloc(kPlace, 512, user_).reset();
  }
  // Frees a block of kBusyBytes while work of worker_ uses it.
  void FreeBusyBlock() {
    AllocationPtr block = facade().Alloc(
        kPlace, kBusyBytes, GetParam().is_marked ? user_ : worker_);
    if (GetParam().is_marked) {
      EXPECT_TRUE(facade().RecordStream(block, worker_));
    }
    EXPECT_EQ(device().MemsetAsync(scratch_, 1, 64, worker_), Status::kSuccess);
    block.reset();
  }
  bool WorkIsDone() { return !device().Step(worker_); }

  DevicePtr scratch_ = 0;
  const Stream worker_ = NewStream();
  const Stream user_ = NewStream();
};

TEST_P(ForbidWaitsTest, WithoutThemTheStreamWaits) {
  const CallLog log(device());
  FreeBusyBlock();
  const AllocationPtr again = facade().Alloc(kPlace, kBusyBytes, user_);
  EXPECT_NE(InsertedWaits(log), 0U);
  EXPECT_FALSE(WorkIsDone());
}

TEST_P(ForbidWaitsTest, NoStreamWaitsForOneThatForbidsIt) {
  facade().ForbidWaits(worker_);
  const CallLog log(device());
  FreeBusyBlock();
  const AllocationPtr small = facade().Alloc(kPlace, 4096, user_);
  EXPECT_FALSE(WorkIsDone());
  FreeBusyBlock();
  // The last resort is a wait of the host.
  const AllocationPtr again = facade().Alloc(kPlace, kBusyBytes, user_);
  EXPECT_EQ(InsertedWaits(log), 0U);
  EXPECT_TRUE(WorkIsDone());
}

TEST_P(ForbidWaitsTest, OneThatForbidsItWaitsForNoStream) {
  facade().ForbidWaits(user_);
  const CallLog log(device());
  FreeBusyBlock();
  const AllocationPtr again = facade().Alloc(kPlace, kBusyBytes, user_);
  EXPECT_EQ(InsertedWaits(log), 0U);
  EXPECT_TRUE(WorkIsDone());
}

// The last event of the stream says when its memory is free. Still no stream
// may wait for it.
TEST_P(ForbidWaitsTest, TheEndOfTheStreamChangesNothing) {
  facade().ForbidWaits(worker_);
  const CallLog log(device());
  FreeBusyBlock();
  facade().StreamDestroyed(worker_);
  const AllocationPtr again = facade().Alloc(kPlace, kBusyBytes, user_);
  EXPECT_EQ(InsertedWaits(log), 0U);
  EXPECT_TRUE(WorkIsDone());
}

TEST_P(ForbidWaitsTest, TheMemoryIsFreeOnceTheHostHasSeenTheWorkDone) {
  facade().ForbidWaits(worker_);
  FreeBusyBlock();
  device().StepAll();
  const CallLog log(device());
  const AllocationPtr again = facade().Alloc(kPlace, kBusyBytes, user_);
  EXPECT_EQ(InsertedWaits(log), 0U);
}

TEST_P(ForbidWaitsTest, TwoOtherStreamsStillWait) {
  facade().ForbidWaits(NewStream());
  const CallLog log(device());
  FreeBusyBlock();
  const AllocationPtr again = facade().Alloc(kPlace, kBusyBytes, user_);
  EXPECT_NE(InsertedWaits(log), 0U);
  EXPECT_FALSE(WorkIsDone());
}

// An event of the program is no way around it.
TEST_P(ForbidWaitsTest, ARecordedUseIsAMark) {
  facade().ForbidWaits(worker_);
  Event event;
  ASSERT_EQ(device().EventCreate(&event, kEventDisableTiming),
            Status::kSuccess);
  const CallLog log(device());
  AllocationPtr block = facade().Alloc(kPlace, kBusyBytes, user_);
  EXPECT_EQ(device().MemsetAsync(scratch_, 1, 64, worker_), Status::kSuccess);
  EXPECT_EQ(device().EventRecord(event, worker_, 0), Status::kSuccess);
  EXPECT_TRUE(facade().RecordUse(*block, worker_, event));
  block.reset();
  const AllocationPtr again = facade().Alloc(kPlace, kBusyBytes, user_);
  EXPECT_EQ(InsertedWaits(log), 0U);
  EXPECT_TRUE(WorkIsDone());
  EXPECT_EQ(device().EventDestroy(event), Status::kSuccess);
}

TEST_P(ForbidWaitsTest, AStreamMustBeNamed) {
  EXPECT_THROW(facade().ForbidWaits(Stream()), std::invalid_argument);
}

INSTANTIATE_TEST_SUITE_P(
    Strategies, ForbidWaitsTest,
    testing::Values(
        ForbidCase{"auto_growth", false}, ForbidCase{"auto_growth", true},
        ForbidCase{"virtual_memory", false}, ForbidCase{"virtual_memory", true},
        ForbidCase{"bfc", false}, ForbidCase{"bfc", true},
        ForbidCase{"naive_best_fit", false}, ForbidCase{"naive_best_fit", true},
        ForbidCase{"thread_local", false}, ForbidCase{"thread_local", true},
        ForbidCase{"pool", false}, ForbidCase{"pool", true}),
    NameOfForbidCase);

}  // namespace
}  // namespace strata
