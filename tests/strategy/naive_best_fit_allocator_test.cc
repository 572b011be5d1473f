// naive_best_fit over a place. Rule numbers are those of paddle.md §3.4, faults
// those of its §5.

#include "strata/strategy/naive_best_fit_allocator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "strata/allocation/error.h"
#include "strata/allocation/size.h"
#include "strata/strategy/auto_growth_allocator.h"
#include "strata/tests/testing/live_ranges.h"
#include "strata/tests/testing/pool_place.h"

namespace strata {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

StrategyOptions Chunks(std::uint64_t first_mib, std::uint64_t next_mib) {
  StrategyOptions options;
  options.initial_gpu_memory_in_mb = first_mib;
  options.reallocate_gpu_memory_in_mb = next_mib;
  return options;
}

class NaiveBestFitTest : public ::testing::Test {
 protected:
  void Use(std::uint64_t memory_mib, const StrategyOptions& options,
           PlaceKind kind = PlaceKind::kDevice, std::size_t limit_bytes = 0) {
    PoolPlaceOptions place;
    place.memory_bytes = Mebibytes(memory_mib);
    place.kind = kind;
    place.limit_bytes = limit_bytes;
    place_ = std::make_unique<PoolPlace>(place);
    stream_ = place_->NewChainStream();
    place_->pool()->AddVisitor([this](void*, std::size_t bytes, int change) {
      if (change > 0) chunks_.push_back(bytes);
    });
    naive_ = std::make_unique<NaiveBestFitAllocator>(place_->pool(), stream_,
                                                     options);
  }
  AllocationPtr Get(std::size_t bytes) { return naive_->Allocate(bytes); }
  Failure FailureOf(std::size_t bytes) {
    Failure failure;
    EXPECT_EQ(naive_->AllocateOrNull(Request{bytes}, failure), nullptr);
    return failure;
  }
  std::size_t Available() const {
    std::size_t free_bytes = 0;
    std::size_t total_bytes = 0;
    EXPECT_EQ(place_->device().MemGetInfo(&free_bytes, &total_bytes),
              Status::kSuccess);
    return free_bytes - free_bytes / 20;
  }
  static std::size_t Fraction(std::size_t available) {
    return static_cast<std::size_t>(static_cast<double>(available) * 0.92) &
           ~std::size_t{255};
  }

  std::unique_ptr<PoolPlace> place_;
  std::shared_ptr<ChainStream> stream_;
  std::vector<std::size_t> chunks_;  // taken from the system, in order
  std::unique_ptr<NaiveBestFitAllocator> naive_;
};

// Rule 1, §3.2-6: nothing is kept in the memory, so sizes grow by rounding
// alone, and addresses are aligned (the original's are 64 mod 256).
TEST_F(NaiveBestFitTest, Rule1ResultsAreRoundedTo256AndAligned) {
  Use(64, Chunks(1, 1));
  std::vector<AllocationPtr> live;
  for (const std::size_t bytes : {1U, 256U, 257U, 4096U}) {
    live.push_back(Get(bytes));
    EXPECT_EQ(live.back()->size(), AlignUp(bytes, 256));
    EXPECT_EQ(live.back()->requested_bytes(), bytes);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(live.back()->data()) % 256, 0U);
  }
}

TEST_F(NaiveBestFitTest, Rule1HostAndPinnedBlocksAreLarger) {
  Use(64, StrategyOptions(), PlaceKind::kHost);
  EXPECT_EQ(Get(1)->size(), Kibibytes(4));
  Use(64, StrategyOptions(), PlaceKind::kPinned);
  EXPECT_EQ(Get(1)->size(), Kibibytes(64));
}

// Rule 2, but counted.
TEST_F(NaiveBestFitTest, Rule2HugeBlocksAreTheSystemsOwnAndCounted) {
  Use(64, Chunks(4, 4));
  const AllocationPtr small = Get(1000);
  AllocationPtr largest = Get(Mebibytes(4));
  EXPECT_EQ(naive_->huge_count(), 0U);
  AllocationPtr huge = Get(Mebibytes(4) + 1);
  EXPECT_EQ(naive_->huge_count(), 1U);
  EXPECT_EQ(huge->base(), huge->data());
  EXPECT_EQ(huge->requested_bytes(), Mebibytes(4) + 1);
  EXPECT_THAT(chunks_,
              ElementsAre(Mebibytes(4), Mebibytes(4), Mebibytes(4) + 256));
  EXPECT_EQ(naive_->stats().in_use_bytes,
            1024 + Mebibytes(4) + Mebibytes(4) + 256);
  EXPECT_EQ(naive_->stats().chunks, 3U);
  // Freed straight back, after the work that used it.
  const auto waits = place_->device().CallCount(DeviceCall::kStreamSynchronize);
  huge.reset();
  EXPECT_EQ(place_->device().CallCount(DeviceCall::kStreamSynchronize),
            waits + 1);
  EXPECT_EQ(place_->pool()->reserved_bytes(), Mebibytes(8));
  EXPECT_EQ(naive_->huge_count(), 0U);
  EXPECT_EQ(naive_->stats().in_use_bytes, 1024 + Mebibytes(4));
}

// Rule 4, with rule 5: the fraction is taken of what is available then.
TEST_F(NaiveBestFitTest, Rule4ChunksAreFractionsOfWhatIsAvailable) {
  Use(256, StrategyOptions());
  const std::size_t first = Fraction(Available());
  const AllocationPtr small = Get(1000);
  EXPECT_THAT(chunks_, ElementsAre(first));
  const AllocationPtr most = Get(first - 1024);
  const std::size_t second = Fraction(Available());
  EXPECT_LT(second, first);
  const AllocationPtr next = Get(1000);
  EXPECT_THAT(chunks_, ElementsAre(first, second));
}

TEST_F(NaiveBestFitTest, Rule4TheFlagsInMebibytesReplaceTheFraction) {
  Use(256, Chunks(8, 16));
  std::vector<AllocationPtr> live;
  for (int i = 0; i < 3; ++i) live.push_back(Get(Mebibytes(8)));
  EXPECT_THAT(chunks_, ElementsAre(Mebibytes(8), Mebibytes(16)));
  // Nothing is held any more: the next chunk is a first one.
  live.clear();
  EXPECT_EQ(naive_->Release(), Mebibytes(24));
  live.push_back(Get(1000));
  EXPECT_EQ(chunks_.back(), Mebibytes(8));
}

TEST_F(NaiveBestFitTest, Rule4ALargerRequestGetsAChunkOfItsSize) {
  Use(256, Chunks(8, 16));
  const AllocationPtr first = Get(Mebibytes(12));
  EXPECT_THAT(chunks_, ElementsAre(Mebibytes(12)));
}

TEST_F(NaiveBestFitTest, Rule4TheHostsChunkIsFixed) {
  StrategyOptions options;
  options.initial_cpu_memory_in_mb = 3;
  Use(64, options, PlaceKind::kHost);
  std::vector<AllocationPtr> live;
  for (int i = 0; i < 3; ++i) live.push_back(Get(Mebibytes(2)));
  EXPECT_THAT(chunks_, ElementsAre(Mebibytes(3), Mebibytes(3), Mebibytes(3)));
}

// Rule 5, lazily: building asks the device nothing.
TEST_F(NaiveBestFitTest, Rule5BuildingMakesNoDeviceCall) {
  Use(64, StrategyOptions());
  EXPECT_EQ(place_->DeviceCalls(), 1U);  // the stream
  Get(1000).reset();
  const auto calls = place_->DeviceCalls();
  Get(1000).reset();
  EXPECT_EQ(place_->DeviceCalls(), calls);
}

TEST_F(NaiveBestFitTest, Rule8ReleaseGivesIdleChunksBackAfterTheirWork) {
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

// Fault A9: the fraction of what was left was below the request, or the chunk
// that was wanted was not to be had, and the rest of the memory stayed unused.
TEST_F(NaiveBestFitTest, A9MemoryBeyondTheFractionCanBeHad) {
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

// The same with one request: it needs more than the 95 % that a chunk may take.
TEST_F(NaiveBestFitTest, A9ARequestMayNeedWhatIsLeftToTheDriver) {
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
TEST_F(NaiveBestFitTest, B16AChunkThatIsNotToBeHadIsTriedSmaller) {
  Use(64, Chunks(500, 500));
  const AllocationPtr small = Get(1000);
  ASSERT_EQ(chunks_.size(), 1U);
  EXPECT_EQ(chunks_[0], Mebibytes(60));  // 64 less 5 %, in whole steps
  const AllocationPtr most = Get(Mebibytes(59));
  const AllocationPtr rest = Get(Mebibytes(3));
  EXPECT_THAT(chunks_, ElementsAre(Mebibytes(60), Mebibytes(4)));
}

TEST_F(NaiveBestFitTest, ALimitBoundsWhatIsAvailable) {
  Use(256, StrategyOptions(), PlaceKind::kDevice, Mebibytes(100));
  const AllocationPtr small = Get(1000);
  EXPECT_THAT(chunks_, ElementsAre(Fraction(Mebibytes(95))));
  const AllocationPtr more = Get(Mebibytes(12));
  EXPECT_LE(place_->pool()->reserved_bytes(), Mebibytes(100));
  EXPECT_EQ(FailureOf(Mebibytes(90)).reason, Failure::Reason::kLimit);
}

// The device was full when it was first asked, so everything looked huge.
TEST_F(NaiveBestFitTest, ADeviceThatWasFullAtFirstIsPooledLater) {
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
// retry sees, and the exception made of it is OutOfMemory.
TEST_F(NaiveBestFitTest, B8ExhaustionIsAFailureWithTheNumbers) {
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

// Rule 10 and fault B18: pinned memory that was refused came up as null.
TEST_F(NaiveBestFitTest, B18RefusedPinnedMemoryIsOutOfMemory) {
  Use(64, StrategyOptions(), PlaceKind::kPinned);
  place_->device().AddFault(FailAll(DeviceCall::kMallocHost));
  EXPECT_THROW(Get(1000), OutOfMemory);
  place_->device().ClearFaults();
  EXPECT_NE(Get(1000)->data(), nullptr);
}

// Rule 4: the cap on pinned memory.
TEST_F(NaiveBestFitTest, Rule4PinnedMemoryIsCapped) {
  StrategyOptions options;
  // 16 MiB: chunks of 64 KiB, as far as rounding goes.
  options.fraction_of_cuda_pinned_memory_to_use =
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
  // What is idle goes back before the cap refuses.
  most = Get(Mebibytes(14));
  EXPECT_LE(place_->pool()->reserved_bytes(), Mebibytes(16));
}

TEST_F(NaiveBestFitTest, IdleChunksGoBackForAHugeBlock) {
  Use(64, Chunks(40, 40));
  Get(1000).reset();
  EXPECT_EQ(place_->pool()->reserved_bytes(), Mebibytes(40));
  const AllocationPtr huge = Get(Mebibytes(50));
  EXPECT_EQ(place_->pool()->reserved_bytes(), Mebibytes(50));
}

// The pool of the place may ask for a chunk that another strategy can use.
TEST_F(NaiveBestFitTest, AnIdleChunkServesAnotherStrategyOfThePlace) {
  Use(64, Chunks(40, 40));
  StrategyOptions options;
  options.auto_growth_give_back_limit = 0;
  AutoGrowthAllocator other(place_->pool(), place_->NewChainStream(),
                            AutoGrowthPolicy(options));
  Get(1000).reset();
  const auto waits = place_->device().CallCount(DeviceCall::kStreamSynchronize);
  const AllocationPtr taken = other.Allocate(Mebibytes(30));
  EXPECT_EQ(place_->device().CallCount(DeviceCall::kMemFree), 0U);
  EXPECT_EQ(place_->device().CallCount(DeviceCall::kStreamSynchronize),
            waits + 1);
  EXPECT_EQ(naive_->stats().reserved_bytes, 0U);
  EXPECT_EQ(other.stats().reserved_bytes, Mebibytes(40));
}

TEST_F(NaiveBestFitTest, AnIdleChunkMakesRoomForAGrowthElsewhere) {
  Use(64, Chunks(12, 12));
  AutoGrowthAllocator other(place_->pool(), place_->NewChainStream(),
                            AutoGrowthPolicy(StrategyOptions()));
  AllocationPtr kept = Get(Mebibytes(12));
  Get(Mebibytes(12)).reset();
  EXPECT_EQ(place_->pool()->reserved_bytes(), Mebibytes(24));
  // Memory is not exhausted; the idle chunk covers the growth.
  const AllocationPtr grown = other.Allocate(Mebibytes(12));
  EXPECT_EQ(place_->pool()->reserved_bytes(), Mebibytes(24));
  EXPECT_EQ(naive_->stats().reserved_bytes, Mebibytes(12));
}

// A huge block that the system has no memory for, while a pool has room.
TEST_F(NaiveBestFitTest, AHugeBlockMayComeFromAPool) {
  Use(64, Chunks(40, 1));
  const AllocationPtr pinned_down = Get(1000);
  Get(Mebibytes(39)).reset();
  // The chunk of 40 MiB counts as the largest block: use it up to two thirds.
  const AllocationPtr middle = Get(Mebibytes(20));
  const AllocationPtr other = Get(Mebibytes(23));
  EXPECT_EQ(FailureOf(Mebibytes(20)).reason, Failure::Reason::kDeviceMemory);
  EXPECT_NE(Get(Mebibytes(19)), nullptr);
}

TEST_F(NaiveBestFitTest, NoGrowthAsksTheSystemNothing) {
  Use(64, StrategyOptions());
  const auto calls = place_->DeviceCalls();
  Failure failure;
  EXPECT_EQ(naive_->AllocateOrNull(Request{1000, 0, kNoGrowth}, failure),
            nullptr);
  EXPECT_EQ(failure.reason, Failure::Reason::kNoGrowth);
  EXPECT_EQ(place_->DeviceCalls(), calls);
  Get(1000).reset();
  EXPECT_NE(naive_->AllocateOrNull(Request{1000, 0, kNoGrowth}, failure),
            nullptr);
}

TEST_F(NaiveBestFitTest, AlignmentAbove256IsRefused) {
  Use(64, StrategyOptions());
  EXPECT_EQ(naive_->max_alignment(), 256U);
  EXPECT_THROW(naive_->Allocate(Request{1000, 512}), std::invalid_argument);
}

TEST_F(NaiveBestFitTest, BadOptionsAreRefusedWhenBuilding) {
  PoolPlace place;
  StrategyOptions options;
  options.fraction_of_gpu_memory_to_use = 2;
  try {
    const NaiveBestFitAllocator bad(place.pool(), place.NewChainStream(),
                                    options);
    FAIL() << "a fraction of 2 is not one";
  } catch (const std::invalid_argument& error) {
    EXPECT_THAT(error.what(), HasSubstr("fraction_of_gpu_memory_to_use"));
  }
}

// Every call of the system fails once: the request fails and nothing changes,
// or it is met; afterwards all is as ever.
TEST_F(NaiveBestFitTest, AFailedSystemCallChangesNothing) {
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

TEST_F(NaiveBestFitTest, TheFirstFailedSystemCallIsReported) {
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

class BlockLister final : public AllocatorVisitor {
 public:
  void VisitLayer(const Allocator& /*layer*/) override {}
  void VisitBlocks(const Allocator& /*layer*/,
                   const std::vector<BlockInfo>& blocks) override {
    for (const BlockInfo& block : blocks) {
      if (!block.is_free) in_use.insert(block.data);
    }
  }
  std::set<void*> in_use;
};

TEST_F(NaiveBestFitTest, AVisitorSeesHugeBlocksToo) {
  Use(64, Chunks(1, 1));
  std::vector<AllocationPtr> live;
  std::set<void*> expected;
  for (const std::size_t bytes :
       {std::size_t{1000}, Mebibytes(3), Kibibytes(900), Mebibytes(4)}) {
    live.push_back(Get(bytes));
    expected.insert(live.back()->data());
  }
  EXPECT_EQ(naive_->huge_count(), 2U);
  BlockLister lister;
  naive_->Accept(lister);
  EXPECT_EQ(lister.in_use, expected);
  live[1].reset();  // the huge one that came first
  BlockLister after;
  naive_->Accept(after);
  EXPECT_EQ(after.in_use.size(), 3U);
}

TEST_F(NaiveBestFitTest, ServesThreadsTogether) {
  Use(64, Chunks(1, 1));
  LiveRanges ranges;
  const auto work = [&](unsigned seed) {
    std::mt19937_64 random(seed);
    std::vector<AllocationPtr> mine;
    for (int i = 0; i < 400; ++i) {
      if (random() % 50 == 0) naive_->Release();
      if (!mine.empty() && (random() % 2 == 0 || mine.size() > 15)) {
        std::swap(mine[random() % mine.size()], mine.back());
        EXPECT_TRUE(ranges.Remove(*mine.back()));
        mine.pop_back();
        continue;
      }
      Failure failure;
      // Some are huge.
      const std::size_t bytes = 1 + random() % (1U << (4 + random() % 18));
      AllocationPtr one = naive_->AllocateOrNull(Request{bytes}, failure);
      if (one == nullptr) {
        EXPECT_TRUE(failure.IsExhaustion());
        continue;
      }
      ASSERT_TRUE(ranges.Add(*one));
      mine.push_back(std::move(one));
    }
    for (const AllocationPtr& left : mine) EXPECT_TRUE(ranges.Remove(*left));
  };
  std::vector<std::thread> threads;
  for (unsigned seed = 0; seed < 4; ++seed) threads.emplace_back(work, seed);
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(naive_->IsConsistent());
  EXPECT_EQ(naive_->stats().in_use_bytes, 0U);
  naive_->Release();
  EXPECT_EQ(place_->device().Leaks().allocations, 0U);
}

using NaiveBestFitDeathTest = NaiveBestFitTest;

// Rule 9.
TEST_F(NaiveBestFitDeathTest, Rule9FreeingTwiceNamesTheBlock) {
  Use(64, Chunks(1, 1));
  const AllocationPtr low = Get(4096);
  Allocation* twice = Get(4096).release();
  const AllocationPtr high = Get(4096);
  AllocationPtr(twice).reset();
  EXPECT_DEATH(naive_->DoFree(twice),
               "naive_best_fit: double free of 0x[0-9a-f]+ \\(4.0 KiB on "
               "device:0\\), which is free");
}

}  // namespace
}  // namespace strata
