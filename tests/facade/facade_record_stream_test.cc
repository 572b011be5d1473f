// Memory that several streams use, through the facade, on a device that runs
// work only on request of the test.

#include <gtest/gtest.h>

#include <memory>
#include <ostream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "strata/facade/allocator_facade.h"
#include "strata/tests/facade/facade_fixture.h"

namespace strata {
namespace {

class FacadeRecordStreamTest : public FacadeFixture {
 protected:
  FacadeRecordStreamTest() : FacadeFixture(1, "manual") {
    EXPECT_EQ(device().MemAlloc(&scratch_, 4096), Status::kSuccess);
  }
  ~FacadeRecordStreamTest() override {
    facade_.reset();
    EXPECT_EQ(device().MemFree(scratch_), Status::kSuccess);
  }

  void Work(const Stream& stream) {
    EXPECT_EQ(device().MemsetAsync(scratch_, 1, 64, stream), Status::kSuccess);
  }
  std::uint64_t Waits() {
    return Count(DeviceCall::kStreamSynchronize) +
           Count(DeviceCall::kEventSynchronize) +
           Count(DeviceCall::kSynchronize);
  }

  DevicePtr scratch_ = 0;
};

TEST_F(FacadeRecordStreamTest, AFreeOnNoStreamLeavesTheAllocation) {
  Build();
  AllocationPtr allocation = facade().Alloc(kPlace, 100);
  EXPECT_THROW(facade().Free(std::move(allocation), Stream()),
               std::invalid_argument);
  // NOLINTNEXTLINE(bugprone-use-after-move): it was not moved.
  ASSERT_NE(allocation, nullptr);
  EXPECT_EQ(facade().GetStats(kPlace).live_allocations(), 1U);
}

TEST_F(FacadeRecordStreamTest, AFreeOfNothingIsIgnored) {
  Build();
  facade().Free(nullptr, NewStream());
  facade().Free(facade().Alloc(kPlace, 0), NewStream());
}

// Host memory belongs to no stream, so every stream counts as another one.
TEST_F(FacadeRecordStreamTest, PinnedMemoryFreedOnAStreamWaitsForItsWork) {
  Build();
  const Stream stream = NewStream();
  const Place pinned = PinnedPlace(0);
  AllocationPtr allocation = facade().Alloc(pinned, 4096);
  const void* const data = allocation->data();
  Work(stream);
  facade().Free(std::move(allocation), stream);
  const AllocationPtr next = facade().Alloc(pinned, 4096);
  EXPECT_NE(next->data(), data);
}

// Strategies for one stream, and strategies that streams share.
class FacadeReuseTest : public FacadeRecordStreamTest,
                        public testing::WithParamInterface<const char*> {
 protected:
  FacadeReuseTest() {
    Build(std::string("allocator_strategy=").append(GetParam()));
  }
};

TEST_P(FacadeReuseTest, MemoryFreedOnAnotherStreamIsNotReusedBeforeItsWork) {
  const Stream own = NewStream();
  const Stream other = NewStream();
  AllocationPtr allocation = facade().Alloc(kPlace, Mebibytes(4), own);
  const void* const data = allocation->data();
  Work(other);
  facade().Free(std::move(allocation), other);
  EXPECT_EQ(facade().GetStats(kPlace).live_allocations(), 0U);
  const AllocationPtr next = facade().Alloc(kPlace, Mebibytes(4), own);
  EXPECT_NE(next->data(), data);
  EXPECT_GT(device().PendingCount(), 0U);
}

TEST_P(FacadeReuseTest, MemoryFreedOnItsOwnStreamIsReusedAtOnce) {
  if (GetParam() == std::string("direct")) GTEST_SKIP() << "reuses nothing";
  const Stream own = NewStream();
  AllocationPtr allocation = facade().Alloc(kPlace, Mebibytes(4), own);
  const void* const data = allocation->data();
  Work(own);
  facade().Free(std::move(allocation), own);
  const AllocationPtr next = facade().Alloc(kPlace, Mebibytes(4), own);
  EXPECT_EQ(next->data(), data);
  EXPECT_GT(device().PendingCount(), 0U);
}

TEST_P(FacadeReuseTest, MarkedMemoryIsNotReusedWhileItIsUsed) {
  const Stream own = NewStream();
  const Stream other = NewStream();
  AllocationPtr allocation = facade().Alloc(kPlace, Mebibytes(4), own);
  const void* const data = allocation->data();
  EXPECT_TRUE(facade().RecordStream(allocation, other));
  Work(other);
  allocation.reset();
  AllocationPtr next = facade().Alloc(kPlace, Mebibytes(4), own);
  EXPECT_NE(next->data(), data);
  EXPECT_GT(device().PendingCount(), 0U);
}

// If memory is not available beside waiting blocks, the request waits for them
// and then succeeds.
TEST_P(FacadeReuseTest, NothingIsRefusedThatWouldFit) {
  const Stream own = NewStream();
  const Stream other = NewStream();
  facade().Alloc(kPlace, 256, other).reset();
  AllocationPtr allocation = facade().Alloc(kPlace, Mebibytes(40), own);
  EXPECT_TRUE(facade().RecordStream(allocation, other));
  Work(own);
  Work(other);
  allocation.reset();
  EXPECT_NO_THROW(facade().Alloc(kPlace, Mebibytes(40), own));
  Work(own);
  EXPECT_NO_THROW(facade().Alloc(kPlace, Mebibytes(40), other));
}

TEST_P(FacadeReuseTest, AnEndingStreamIsNotWaitedFor) {
  const Stream own = NewStream();
  const Stream other = NewStream();
  facade().Alloc(kPlace, 256, other).reset();
  AllocationPtr idle = facade().Alloc(kPlace, Mebibytes(4), own);
  AllocationPtr live = facade().Alloc(kPlace, Mebibytes(4), own);
  AllocationPtr marked = facade().Alloc(kPlace, Mebibytes(4), other);
  EXPECT_TRUE(facade().RecordStream(marked, own));
  Work(own);
  idle.reset();
  const std::uint64_t waits = Waits();
  facade().StreamDestroyed(own);
  EXPECT_EQ(Waits(), waits);
  Destroy(own);
  const CallLog log(device());
  marked.reset();
  EXPECT_EQ(log.On(own), 0U);
  device().StepAll();
  live.reset();
  facade().Release(kPlace);
  EXPECT_EQ(log.Failed(), 0U);
  EXPECT_EQ(facade().GetStats(kPlace).reserved_bytes, 0U);
}

TEST_P(FacadeReuseTest, TheEndOfTheFacadeWaitsForWhatIsDeferred) {
  const Stream own = NewStream();
  const Stream other = NewStream();
  AllocationPtr early = facade().Alloc(kPlace, Mebibytes(4), own);
  AllocationPtr late = facade().Alloc(kPlace, Mebibytes(4), own);
  EXPECT_TRUE(facade().RecordStream(early, other));
  EXPECT_TRUE(facade().RecordStream(late, other));
  Work(other);
  early.reset();
  facade_.reset();
  Work(other);
  late.reset();
  EXPECT_EQ(device().PendingCount(), 0U);
  // Only the block of the fixture is left.
  EXPECT_EQ(device().Leaks().allocations, 1U);
}

INSTANTIATE_TEST_SUITE_P(Strategies, FacadeReuseTest,
                         testing::Values("auto_growth", "bfc", "naive_best_fit",
                                         "thread_local", "pool", "direct"),
                         [](const auto& parameter) {
                           return std::string(parameter.param);
                         });

// paddle.md §5 B4: one lock for all devices was held across driver calls.
TEST_F(FacadeRecordStreamTest, AMissDrainsItsOwnPlaceAlone) {
  Build();
  const Stream other = NewStream();
  AllocationPtr managed = facade().Alloc(ManagedPlace(0), 4096);
  EXPECT_TRUE(facade().RecordStream(managed, other));
  managed.reset();
  const CallLog log(device());
  const AllocationPtr miss = facade().Alloc(kPlace, Mebibytes(20));
  EXPECT_EQ(log.On(other), 0U);
}

// cuda_semantics.md §5.2 M7: the CPU writes at once, so a wait of a stream is
// no proof.
TEST_F(FacadeRecordStreamTest, HostMemoryIsReusedOnlyOnceTheHostKnows) {
  for (const char* const wait : {"false", "true"}) {
    Build(std::string("strata_cross_stream_wait=").append(wait));
    const Stream other = NewStream();
    AllocationPtr allocation = facade().Alloc(PinnedPlace(0), 4096);
    const void* const data = allocation->data();
    EXPECT_TRUE(facade().RecordStream(allocation, other));
    Work(other);
    allocation.reset();
    EXPECT_NE(facade().Alloc(PinnedPlace(0), 4096)->data(), data);
    device().StepAll();
    facade().Release(PinnedPlace(0));
    facade_.reset();
  }
}

TEST_F(FacadeRecordStreamTest, AUseIsOverWithItsEvent) {
  Build();
  const Stream other = NewStream();
  Event event;
  ASSERT_EQ(device().EventCreate(&event, kEventDisableTiming),
            Status::kSuccess);
  AllocationPtr allocation = facade().Alloc(kPlace, Mebibytes(4));
  const void* const data = allocation->data();
  Work(other);
  EXPECT_EQ(device().EventRecord(event, other, 0), Status::kSuccess);
  EXPECT_TRUE(facade().RecordUse(*allocation, other, event));
  EXPECT_EQ(device().EventDestroy(event), Status::kSuccess);
  allocation.reset();
  AllocationPtr second = facade().Alloc(kPlace, Mebibytes(4));
  EXPECT_NE(second->data(), data);
  device().StepAll();
  // Not a hit: a hit does not check for completed work.
  AllocationPtr third = facade().Alloc(kPlace, Mebibytes(40));
  EXPECT_EQ(facade().Alloc(kPlace, Mebibytes(4))->data(), data);
}

TEST_F(FacadeRecordStreamTest, AUseNeedsAnEventAndAStream) {
  Build();
  const AllocationPtr allocation = facade().Alloc(kPlace, 100);
  EXPECT_THROW(facade().RecordUse(*allocation, NewStream(), Event()),
               std::invalid_argument);
  EXPECT_THROW(facade().RecordUse(*allocation, Stream(), Event{&scratch_}),
               std::invalid_argument);
}

TEST_F(FacadeRecordStreamTest, ThousandsOfFreesRecordOneEventIn64) {
  Build();
  const Stream own = NewStream();
  const Stream other = NewStream();
  constexpr int kFrees = 2048;
  std::vector<AllocationPtr> held;
  for (int i = 0; i < kFrees; ++i) {
    held.push_back(facade().Alloc(kPlace, 256, own));
    EXPECT_TRUE(facade().RecordStream(held.back(), other));
  }
  const std::uint64_t before = Count(DeviceCall::kEventRecord);
  held.clear();
  device().StepAll();
  facade().Alloc(kPlace, Mebibytes(20), own).reset();
  EXPECT_LE(Count(DeviceCall::kEventRecord) - before, kFrees / 64U);
}

TEST_F(FacadeRecordStreamTest, AStreamThatWaitsNeedsNoMoreMemory) {
  Build("strata_cross_stream_wait");
  const Stream own = NewStream();
  const Stream other = NewStream();
  AllocationPtr allocation = facade().Alloc(kPlace, Mebibytes(40), own);
  const void* const data = allocation->data();
  EXPECT_TRUE(facade().RecordStream(allocation, other));
  Work(other);
  allocation.reset();
  const std::uint64_t waits = Waits();
  EXPECT_EQ(facade().Alloc(kPlace, Mebibytes(40), own)->data(), data);
  EXPECT_EQ(Waits(), waits);
  Work(own);
  EXPECT_FALSE(device().Step(own));
}

}  // namespace
}  // namespace strata
