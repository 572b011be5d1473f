// naive_best_fit when memory is short, and how it releases memory. Rule numbers
// are those of paddle.md §3.4, fault numbers those of its §5.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "strata/allocation/error.h"
#include "strata/allocation/visitor.h"
#include "strata/base/size.h"
#include "strata/strategy/auto_growth/auto_growth_allocator.h"
#include "strata/strategy/buddy/buddy_sizes.h"
#include "strata/tests/strategy/buddy/naive_best_fit_fixture.h"

namespace strata {
namespace {

using ::testing::ElementsAre;

using NaiveBestFitExhaustionTest = NaiveBestFitTest;

TEST_F(NaiveBestFitExhaustionTest,
       Rule8ReleaseGivesIdleChunksBackAfterTheirWork) {
  Use(64, Chunks(4, 4));
  AllocationPtr kept = Get(1000);
  Get(Mebibytes(4)).reset();
  EXPECT_EQ(naive_->stats().idle_bytes, Mebibytes(4));
  EXPECT_EQ(naive_->Release(), Mebibytes(4));
  EXPECT_EQ(place_->device().CallCount(DeviceCall::kStreamSynchronize), 1U);
  EXPECT_EQ(naive_->Release(), 0U);
  kept.reset();
  EXPECT_EQ(naive_->Release(), Mebibytes(4));
  EXPECT_EQ(place_->device().Leaks().allocations, 0U);
}

// Fault A9: the fraction of the rest was below the request, or the wanted chunk
// was refused, and the rest of the memory stayed unused.
TEST_F(NaiveBestFitExhaustionTest, A9MemoryBeyondTheFractionCanBeHad) {
  Use(256, StrategyOptions());
  std::vector<AllocationPtr> live;
  Failure failure;
  while (AllocationPtr one =
             naive_->AllocateOrNull(Request{Mebibytes(2)}, failure)) {
    live.push_back(std::move(one));
    ASSERT_LE(live.size(), 128U);
  }
  EXPECT_GE(live.size(), 124U);
  std::size_t free_bytes = 0;
  std::size_t total_bytes = 0;
  place_->device().MemGetInfo(&free_bytes, &total_bytes);
  EXPECT_LT(free_bytes, Mebibytes(2));
}

// Likewise with one request, which needs more than the 95 % that a chunk may
// use.
TEST_F(NaiveBestFitExhaustionTest, A9ARequestMayNeedWhatIsLeftToTheDriver) {
  Use(256, StrategyOptions());
  const AllocationPtr first = Get(Mebibytes(200));
  const std::size_t size = Mebibytes(31);
  EXPECT_LT(Available(), size);
  EXPECT_EQ(naive_->huge_count(), 0U);
  const AllocationPtr second = Get(size);
  EXPECT_EQ(naive_->huge_count(), 0U);
  EXPECT_THAT(chunks_, ElementsAre(testing::_, size));
}

// Fault B16, A9: a first chunk larger than the device.
TEST_F(NaiveBestFitExhaustionTest, B16AChunkThatIsNotToBeHadIsTriedSmaller) {
  Use(64, Chunks(500, 500));
  const AllocationPtr small = Get(1000);
  ASSERT_EQ(chunks_.size(), 1U);
  EXPECT_EQ(chunks_[0], Mebibytes(60));  // 64 less 5 %, in whole steps
  const AllocationPtr most = Get(Mebibytes(59));
  const AllocationPtr rest = Get(Mebibytes(3));
  EXPECT_THAT(chunks_, ElementsAre(Mebibytes(60), Mebibytes(4)));
}

TEST_F(NaiveBestFitExhaustionTest, ALimitBoundsWhatIsAvailable) {
  Use(256, StrategyOptions(), PlaceKind::kDevice, Mebibytes(100));
  const AllocationPtr small = Get(1000);
  EXPECT_THAT(chunks_, ElementsAre(Fraction(Mebibytes(95))));
  const AllocationPtr more = Get(Mebibytes(12));
  EXPECT_LE(place_->pool()->reserved_bytes(), Mebibytes(100));
  EXPECT_EQ(FailureOf(Mebibytes(90)).reason, Failure::Reason::kLimit);
}

// An earlier fault: the device was full at the first query, so every request
// looked huge.
TEST_F(NaiveBestFitExhaustionTest, ADeviceThatWasFullAtFirstIsPooledLater) {
  Use(64, StrategyOptions());
  DevicePtr taken = 0;
  ASSERT_EQ(place_->device().MemAlloc(&taken, Mebibytes(64)), Status::kSuccess);
  EXPECT_EQ(FailureOf(1000).reason, Failure::Reason::kDeviceMemory);
  ASSERT_EQ(place_->device().MemFree(taken), Status::kSuccess);
  const AllocationPtr small = Get(1000);
  const AllocationPtr large = Get(Mebibytes(20));
  EXPECT_EQ(naive_->huge_count(), 0U);
  EXPECT_EQ(chunks_.size(), 1U);
}

// Rule 10 and fault B8: the refusal is a Failure with the numbers, which a
// retry sees. Its exception is OutOfMemory.
TEST_F(NaiveBestFitExhaustionTest, B8ExhaustionIsAFailureWithTheNumbers) {
  Use(64, Chunks(8, 8));
  const AllocationPtr live = Get(Mebibytes(3));
  Get(Mebibytes(1)).reset();
  const Failure failure = FailureOf(Mebibytes(100));
  EXPECT_EQ(failure.reason, Failure::Reason::kDeviceMemory);
  EXPECT_TRUE(failure.IsExhaustion());
  EXPECT_EQ(failure.requested_bytes, Mebibytes(100));
  EXPECT_EQ(failure.rounded_bytes, Mebibytes(100));
  EXPECT_EQ(failure.in_use_bytes, Mebibytes(3));
  EXPECT_EQ(failure.largest_free_bytes, Mebibytes(5));
  EXPECT_EQ(failure.reserved_bytes, Mebibytes(8));
  EXPECT_EQ(failure.device_free_bytes, Mebibytes(56));
  EXPECT_EQ(failure.device_total_bytes, Mebibytes(64));
  EXPECT_THROW(Get(Mebibytes(100)), OutOfMemory);
  EXPECT_EQ(naive_->stats().reserved_bytes, Mebibytes(8));
}

// Rule 10 and fault B18: a refused request for pinned memory returned null.
TEST_F(NaiveBestFitExhaustionTest, B18RefusedPinnedMemoryIsOutOfMemory) {
  Use(64, StrategyOptions(), PlaceKind::kPinned);
  place_->device().AddFault(FailAll(DeviceCall::kMallocHost));
  EXPECT_THROW(Get(1000), OutOfMemory);
  place_->device().ClearFaults();
  EXPECT_NE(Get(1000)->data(), nullptr);
}

// paddle.md §2 (fraction_of_cuda_pinned_memory_to_use).
TEST_F(NaiveBestFitExhaustionTest, PinnedMemoryIsCapped) {
  StrategyOptions options;
  // 16 MiB: chunks of 64 KiB, within rounding.
  options.Edit<BuddyOptions>().fraction_of_cuda_pinned_memory_to_use =
      static_cast<double>(Mebibytes(16)) /
      static_cast<double>(HostMemoryBytes());
  Use(64, options, PlaceKind::kPinned);
  AllocationPtr most = Get(Mebibytes(15));
  const Failure failure = FailureOf(Mebibytes(2));
  EXPECT_EQ(failure.reason, Failure::Reason::kLimit);
  EXPECT_NEAR(static_cast<double>(failure.limit_bytes),
              static_cast<double>(Mebibytes(16)), 2);
  EXPECT_EQ(failure.reserved_bytes, Mebibytes(15));
  most.reset();
  // Idle memory is released before the cap refuses.
  most = Get(Mebibytes(14));
  EXPECT_LE(place_->pool()->reserved_bytes(), Mebibytes(16));
}

TEST_F(NaiveBestFitExhaustionTest, IdleChunksGoBackForAHugeBlock) {
  Use(64, Chunks(40, 40));
  Get(1000).reset();
  EXPECT_EQ(place_->pool()->reserved_bytes(), Mebibytes(40));
  const AllocationPtr huge = Get(Mebibytes(50));
  EXPECT_EQ(place_->pool()->reserved_bytes(), Mebibytes(50));
}

// The pool of the place may request a chunk that another strategy can use.
TEST_F(NaiveBestFitExhaustionTest, AnIdleChunkServesAnotherStrategyOfThePlace) {
  Use(64, Chunks(40, 40));
  StrategyOptions options;
  options.Edit<AutoGrowthOptions>().auto_growth_give_back_limit = 0;
  AutoGrowthAllocator other(place_->pool(), place_->NewChainStream(),
                            AutoGrowthPolicy(options));
  Get(1000).reset();
  const auto waits = place_->device().CallCount(DeviceCall::kStreamSynchronize);
  const AllocationPtr taken = other.Allocate(Mebibytes(30));
  EXPECT_EQ(place_->device().CallCount(DeviceCall::kMemFree), 0U);
  EXPECT_EQ(place_->device().CallCount(DeviceCall::kStreamSynchronize), waits);
  EXPECT_EQ(naive_->stats().reserved_bytes, 0U);
  EXPECT_EQ(other.stats().reserved_bytes, Mebibytes(40));
}

TEST_F(NaiveBestFitExhaustionTest, AnIdleChunkMakesRoomForAGrowthElsewhere) {
  Use(64, Chunks(12, 12));
  AutoGrowthAllocator other(place_->pool(), place_->NewChainStream(),
                            AutoGrowthPolicy(StrategyOptions()));
  AllocationPtr kept = Get(Mebibytes(12));
  Get(Mebibytes(12)).reset();
  EXPECT_EQ(place_->pool()->reserved_bytes(), Mebibytes(24));
  // Memory is not exhausted: the idle chunk covers the growth.
  const AllocationPtr grown = other.Allocate(Mebibytes(12));
  EXPECT_EQ(place_->pool()->reserved_bytes(), Mebibytes(24));
  EXPECT_EQ(naive_->stats().reserved_bytes, Mebibytes(12));
}

// A huge block without system memory, while a pool has room.
TEST_F(NaiveBestFitExhaustionTest, AHugeBlockMayComeFromAPool) {
  Use(64, Chunks(40, 1));
  const AllocationPtr pinned_down = Get(1000);
  Get(Mebibytes(39)).reset();
  // The chunk of 40 MiB counts as the largest block: use it up to two thirds.
  const AllocationPtr middle = Get(Mebibytes(20));
  const AllocationPtr other = Get(Mebibytes(23));
  EXPECT_EQ(FailureOf(Mebibytes(20)).reason, Failure::Reason::kDeviceMemory);
  EXPECT_NE(Get(Mebibytes(19)), nullptr);
}

// Each system call fails once. The request fails without a change, or succeeds;
// afterwards everything works as before.
TEST_F(NaiveBestFitExhaustionTest, AFailedSystemCallChangesNothing) {
  for (const std::uint64_t mib : {0U, 4U}) {
    for (const DeviceCall call :
         {DeviceCall::kMemGetInfo, DeviceCall::kMemAlloc}) {
      for (std::uint64_t nth = 1; nth <= 4; ++nth) {
        Use(64, Chunks(mib, mib));
        // A chunk, and a huge block if chunks are small.
        for (const std::size_t bytes : {std::size_t{1000}, Mebibytes(9)}) {
          place_->device().ClearFaults();
          FaultRule rule = FailNth(call, nth);
          rule.status = Status::kUnknown;
          place_->device().AddFault(rule);
          const Stats before = naive_->stats();
          Failure failure;
          AllocationPtr got = naive_->AllocateOrNull(Request{bytes}, failure);
          if (got == nullptr) {
            EXPECT_EQ(failure.reason, Failure::Reason::kDevice);
            EXPECT_EQ(failure.status, Status::kUnknown);
            EXPECT_EQ(failure.requested_bytes, bytes);
            EXPECT_EQ(naive_->stats().reserved_bytes, before.reserved_bytes);
            EXPECT_EQ(naive_->stats().in_use_bytes, before.in_use_bytes);
          }
          place_->device().ClearFaults();
          EXPECT_NE(Get(bytes), nullptr) << DeviceCallName(call) << nth;
          EXPECT_TRUE(naive_->IsConsistent());
        }
        naive_->Release();
        EXPECT_EQ(naive_->stats().in_use_bytes, 0U);
        EXPECT_EQ(place_->device().Leaks().allocations, 0U);
      }
    }
  }
}

TEST_F(NaiveBestFitExhaustionTest, TheFirstFailedSystemCallIsReported) {
  for (const DeviceCall call :
       {DeviceCall::kMemGetInfo, DeviceCall::kMemAlloc}) {
    Use(64, StrategyOptions());
    FaultRule rule = FailNth(call, 1);
    rule.status = Status::kUnknown;
    place_->device().AddFault(rule);
    const Failure failure = FailureOf(1000);
    EXPECT_EQ(failure.reason, Failure::Reason::kDevice) << DeviceCallName(call);
    EXPECT_EQ(failure.status, Status::kUnknown);
  }
}

// cuda_semantics.md K8: memory that captured work may still use must not be
// released to the driver.
class NaiveBestFitCaptureTest : public NaiveBestFitTest {
 protected:
  // A huge block, freed while a stream captures.
  void FreeHugeDuringCapture() {
    Use(64, Chunks(4, 4));
    small_ = Get(1000);
    AllocationPtr huge = Get(Mebibytes(9));
    place_->timelines()->gate().Announce();
    EXPECT_EQ(place_->device().StreamBeginCapture(stream_->stream(),
                                                  CaptureMode::kThreadLocal),
              Status::kSuccess);
    huge.reset();
    EXPECT_EQ(Frees(), 0U);
  }
  void EndCapture() {
    Graph graph;
    EXPECT_EQ(place_->device().StreamEndCapture(stream_->stream(), &graph),
              Status::kSuccess);
    EXPECT_EQ(place_->device().GraphDestroy(graph), Status::kSuccess);
    place_->timelines()->gate().Withdraw();
  }
  std::uint64_t Frees() {
    return place_->device().CallCount(DeviceCall::kMemFree);
  }

  AllocationPtr small_;
};

TEST_F(NaiveBestFitCaptureTest, AHugeBlockStaysUntilItsStreamCanBeWaitedFor) {
  FreeHugeDuringCapture();
  EXPECT_EQ(naive_->huge_count(), 0U);
  EXPECT_EQ(naive_->stats().in_use_bytes, 1024 + Mebibytes(9));
  EXPECT_EQ(naive_->stats().reserved_bytes, Mebibytes(13));
  // Meanwhile, neither a request nor a release frees it.
  Get(2000).reset();
  EXPECT_EQ(naive_->Release(), 0U);
  EXPECT_EQ(Frees(), 0U);
  EndCapture();
  Get(2000).reset();
  EXPECT_EQ(Frees(), 1U);
  EXPECT_EQ(naive_->stats().in_use_bytes, 1024U);
  EXPECT_EQ(naive_->stats().reserved_bytes, Mebibytes(4));
}

TEST_F(NaiveBestFitCaptureTest, ItCountsAsMemoryThatARequestMayWaitFor) {
  FreeHugeDuringCapture();
  EndCapture();
  EXPECT_GE(place_->pool()->ReclaimableBytes(/*of_limit=*/false), Mebibytes(9));
  EXPECT_GE(place_->pool()->ReclaimableBytes(/*of_limit=*/true), Mebibytes(9));
  EXPECT_EQ(naive_->Release(), Mebibytes(9));
  EXPECT_EQ(place_->pool()->ReclaimableBytes(/*of_limit=*/true), 0U);
}

TEST_F(NaiveBestFitCaptureTest, ReleaseGivesItBackAfterTheCapture) {
  FreeHugeDuringCapture();
  EndCapture();
  EXPECT_EQ(naive_->Release(), Mebibytes(9));
  EXPECT_EQ(place_->pool()->reserved_bytes(), Mebibytes(4));
}

TEST_F(NaiveBestFitCaptureTest, AVisitorSeesItAsDeferred) {
  struct Lister : AllocatorVisitor {
    void VisitLayer(const Allocator& /*layer*/) override {}
    void VisitBlocks(const Allocator& /*layer*/,
                     const std::vector<BlockInfo>& seen) override {
      for (const BlockInfo& block : seen) {
        if (block.state == BlockState::kDeferred) ++found;
      }
    }
    int found = 0;
  };
  FreeHugeDuringCapture();
  Lister lister;
  naive_->Accept(lister);
  EXPECT_EQ(lister.found, 1);
  EndCapture();
}

}  // namespace
}  // namespace strata
