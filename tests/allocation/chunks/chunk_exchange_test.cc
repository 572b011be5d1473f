// ChunkPool and the holders of idle chunks (chunk_holder.h).

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "strata/allocation/chunks/chunk_holder.h"
#include "strata/allocation/chunks/chunk_pool.h"
#include "strata/tests/testing/heap_call_counter.h"
#include "strata/tests/testing/layers/pool_place.h"

namespace strata {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Holds chunks of a pool, all idle.
class TestHolder final : public ChunkHolder {
 public:
  TestHolder(ChunkPool& pool, std::shared_ptr<ChainStream> stream)
      : ChunkHolder({.stream = stream->stream(), .layer = nullptr}),
        pool_(pool),
        stream_(std::move(stream)) {
    pool_.AddHolder(*this);
  }
  ~TestHolder() override {
    pool_.RemoveHolder(*this);
    done = true;
    TestHolder::GiveBackAll();
  }

  void Hold(std::size_t bytes) {
    Failure failure;
    Allocation* chunk = pool_.TryAllocate(Request{bytes}, failure);
    ASSERT_NE(chunk, nullptr) << failure.ToString();
    chunks_.push_back(chunk);
  }
  std::vector<std::size_t> Sizes() const {
    std::vector<std::size_t> sizes;
    for (const Allocation* chunk : chunks_) {
      sizes.push_back(chunk->size() / Mebibytes(1));
    }
    std::sort(sizes.begin(), sizes.end());
    return sizes;
  }

  IdleInfo Idle(std::size_t fit_bytes) const noexcept override {
    IdleInfo idle;
    for (const Allocation* chunk : chunks_) {
      const std::size_t size = chunk->size();
      idle.bytes += size;
      idle.bytes_with_lent += size;
      idle.system_bytes += AlignUp(size, kSystemStepBytes);
      if (fit_bytes == 0) continue;
      idle.largest = std::max(idle.largest, size);
      if (size >= fit_bytes && (idle.best_fit == 0 || size < idle.best_fit)) {
        idle.best_fit = size;
      }
    }
    return idle;
  }
  bool IdleIsDone() noexcept override {
    if (when_asked) when_asked();
    return done;
  }
  std::size_t GiveBackBestFit(std::size_t bytes) noexcept override {
    return GiveOne(bytes, /*offer=*/false);
  }
  std::size_t OfferIdle(std::size_t bytes) noexcept override {
    return GiveOne(bytes, /*offer=*/true);
  }
  std::size_t GiveBackDone(std::size_t bytes,
                           std::size_t least_bytes) noexcept override {
    std::size_t given = 0;
    while (given < bytes) {
      const std::size_t largest = Idle(/*fit_bytes=*/1).largest;
      if (largest < least_bytes) break;
      given += GiveBackBestFit(largest);
    }
    return given;
  }
  std::size_t GiveBackAll() noexcept override {
    const std::size_t bytes = Idle(0).bytes;
    for (Allocation* chunk : chunks_) pool_.DoFree(chunk);
    chunks_.clear();
    return bytes;
  }

  bool done = true;
  std::function<void()> when_asked;

 private:
  std::size_t GiveOne(std::size_t bytes, bool offer) {
    Allocation* chunk = Take(bytes);
    if (chunk == nullptr) return 0;
    const std::size_t size = chunk->size();
    if (offer) {
      pool_.Offer(chunk, *stream_);
    } else {
      pool_.DoFree(chunk);
    }
    return size;
  }
  Allocation* Take(std::size_t bytes) {
    const std::size_t size = Idle(bytes).best_fit;
    const auto found =
        std::find_if(chunks_.begin(), chunks_.end(),
                     [size](const auto* c) { return c->size() == size; });
    if (found == chunks_.end()) return nullptr;
    Allocation* chunk = *found;
    chunks_.erase(found);
    return chunk;
  }

  ChunkPool& pool_;
  std::shared_ptr<ChainStream> stream_;
  std::vector<Allocation*> chunks_;
};

class ChunkExchangeTest : public ::testing::Test {
 protected:
  // The ladder for an exhausted request of `bytes` on `stream`.
  void Exhaust(const ChainStream& stream, std::size_t bytes,
               std::size_t device_free) {
    Failure failure;
    failure.reason = Failure::Reason::kDeviceMemory;
    failure.requested_bytes = failure.rounded_bytes = bytes;
    failure.device_free_bytes = device_free;
    searches_ = 0;
    place_.reclaimer()->Climb(stream.stream(), failure, [this] {
      ++searches_;
      return pool().stats().idle_bytes != 0;
    });
  }

  ChunkPool& pool() { return *place_.pool(); }

  PoolPlace place_;
  std::shared_ptr<ChainStream> a_ = place_.NewChainStream();
  std::shared_ptr<ChainStream> b_ = place_.NewChainStream();
  std::shared_ptr<ChainStream> c_ = place_.NewChainStream();
  TestHolder holder_a_{pool(), a_};
  TestHolder holder_b_{pool(), b_};
  int searches_ = 0;
};

TEST_F(ChunkExchangeTest, ExhaustionMovesTheSmallestFittingChunkWithinReach) {
  for (const std::size_t size : {20U, 9U, 4U}) holder_a_.Hold(Mebibytes(size));
  holder_b_.Hold(Mebibytes(8));
  Exhaust(*c_, Mebibytes(6), 0);
  EXPECT_EQ(searches_, 1);
  EXPECT_EQ(pool().stats().idle_bytes, Mebibytes(8));
  EXPECT_THAT(holder_a_.Sizes(), ElementsAre(4, 9, 20));
  EXPECT_THAT(holder_b_.Sizes(), IsEmpty());
}

TEST_F(ChunkExchangeTest, TheStreamsOwnChunksAreNotMoved) {
  holder_a_.Hold(Mebibytes(8));
  Exhaust(*a_, Mebibytes(8), 0);
  EXPECT_EQ(pool().stats().idle_bytes, 0U);
  EXPECT_EQ(pool().reserved_bytes(), 0U);
}

TEST_F(ChunkExchangeTest, AChunkOfMoreThanTwiceTheSizeIsReleasedInstead) {
  holder_a_.Hold(Mebibytes(8) + 256);
  Exhaust(*b_, Mebibytes(4), 0);
  EXPECT_EQ(pool().stats().idle_bytes, 0U);
  EXPECT_EQ(pool().reserved_bytes(), 0U);
  EXPECT_EQ(searches_, 1);
}

TEST_F(ChunkExchangeTest, AnImpossibleRequestTakesNothing) {
  holder_a_.Hold(Mebibytes(8));
  holder_b_.Hold(Mebibytes(8));
  Exhaust(*c_, Mebibytes(20), Mebibytes(2));
  EXPECT_EQ(searches_, 0);
  EXPECT_EQ(pool().reserved_bytes(), Mebibytes(16));
}

// A chunk counts with the size that the system rounded it up to: six chunks of
// 1.25 MiB are six frames of 2 MiB.
TEST_F(ChunkExchangeTest, ChunksCountAsWhatTheSystemGetsBack) {
  for (int i = 0; i < 6; ++i) holder_a_.Hold(Kibibytes(1280));
  Exhaust(*b_, Mebibytes(12), 0);
  EXPECT_EQ(pool().reserved_bytes(), 0U);
}

TEST_F(ChunkExchangeTest, OffersCountAsIdleToo) {
  holder_a_.Hold(Mebibytes(8));
  EXPECT_EQ(holder_a_.OfferIdle(Mebibytes(8)), Mebibytes(8));
  Failure failure;
  failure.reason = Failure::Reason::kDeviceMemory;
  failure.rounded_bytes = Mebibytes(8);
  place_.reclaimer()->Climb(b_->stream(), failure, [] { return false; });
  EXPECT_EQ(pool().reserved_bytes(), 0U);
}

TEST_F(ChunkExchangeTest, ARemovedHolderIsNotAsked) {
  {
    TestHolder gone(pool(), c_);
    gone.Hold(Mebibytes(8));
  }
  Exhaust(*a_, Mebibytes(8), Mebibytes(8));
  EXPECT_EQ(searches_, 0);
}

TEST_F(ChunkExchangeTest, RemovingAHolderWaitsForTheCallsInside) {
  auto holder = std::make_unique<TestHolder>(pool(), c_);
  holder->Hold(Mebibytes(8));
  std::atomic<bool> inside{false};
  std::atomic<bool> leaving{false};
  holder->when_asked = [&] {
    if (inside.exchange(true)) return;
    for (int i = 0; i < 100; ++i) std::this_thread::yield();
    leaving = true;
  };
  std::thread grower(
      [&] { pool().market().GiveBackBeforeGrowth(Mebibytes(8), 1.0); });
  while (!inside) std::this_thread::yield();
  pool().RemoveHolder(*holder);
  EXPECT_TRUE(leaving);
  grower.join();
}

// The list cannot be replaced and still contains the holder, but it is not
// called any more.
TEST(ChunkHoldersTest, OneIsRemovedWithoutHostMemory) {
  if (!HeapFailure::is_possible()) GTEST_SKIP() << "a sanitizer has the heap";
  PoolPlace place;
  ChunkPool& pool = *place.pool();
  const std::shared_ptr<ChainStream> stream = place.NewChainStream();
  int asked = 0;
  std::optional<TestHolder> holder;
  const auto grow = [&] {
    pool.market().GiveBackBeforeGrowth(Mebibytes(8), 1.0);
    return std::exchange(asked, 0) != 0;
  };
  const auto add = [&] {
    holder.emplace(pool, stream);
    holder->Hold(Mebibytes(8));
    holder->done = false;
    holder->when_asked = [&asked] { ++asked; };
  };
  add();
  EXPECT_TRUE(grow());
  {
    const HeapFailure failure;
    pool.RemoveHolder(*holder);
  }
  EXPECT_FALSE(grow());
  EXPECT_FALSE(pool.loans().has_lenders());
  pool.RemoveHolder(*holder);
  EXPECT_FALSE(pool.loans().has_lenders());
  holder.reset();
  add();  // in the slot of the removed one
  EXPECT_TRUE(grow());
  const TestHolder second(pool, stream);
  EXPECT_TRUE(pool.loans().has_lenders());
  holder.reset();
  EXPECT_FALSE(grow());
  EXPECT_FALSE(pool.loans().has_lenders());
}

TEST_F(ChunkExchangeTest, HoldersMayComeAndGoWhileOthersClimb) {
  std::atomic<bool> stop{false};
  std::thread climber([&] {
    while (!stop) {
      Failure failure;
      failure.reason = Failure::Reason::kDeviceMemory;
      failure.rounded_bytes = Mebibytes(64);
      place_.reclaimer()->Climb(a_->stream(), failure, [] { return false; });
    }
  });
  for (int i = 0; i < 200; ++i) TestHolder passing(pool(), c_);
  stop = true;
  climber.join();
}

TEST_F(ChunkExchangeTest, GivesTheSmallestThatCoversAGrowthBack) {
  for (const std::size_t size : {20U, 12U}) holder_a_.Hold(Mebibytes(size));
  holder_b_.Hold(Mebibytes(4));
  EXPECT_EQ(pool().market().GiveBackBeforeGrowth(Mebibytes(10), 1.0),
            Mebibytes(12));
  EXPECT_THAT(holder_a_.Sizes(), ElementsAre(20));
  EXPECT_THAT(holder_b_.Sizes(), ElementsAre(4));
}

TEST_F(ChunkExchangeTest, GivesTheLargestBackFirstWhenNoneCovers) {
  for (const std::size_t size : {5U, 6U, 2U}) holder_a_.Hold(Mebibytes(size));
  holder_b_.Hold(Mebibytes(7));
  EXPECT_EQ(pool().market().GiveBackBeforeGrowth(Mebibytes(12), 1.0),
            Mebibytes(13));
  EXPECT_THAT(holder_a_.Sizes(), ElementsAre(2, 5));
  EXPECT_THAT(holder_b_.Sizes(), IsEmpty());
}

TEST_F(ChunkExchangeTest, GivesNothingBackThatDoesNotCoverAGrowth) {
  holder_a_.Hold(Mebibytes(5));
  holder_b_.Hold(Mebibytes(6));
  EXPECT_EQ(pool().market().GiveBackBeforeGrowth(Mebibytes(11) + 1, 10.0), 0U);
  EXPECT_EQ(pool().reserved_bytes(), Mebibytes(11));
}

TEST_F(ChunkExchangeTest, ChunksStillInUseByTheDeviceStay) {
  holder_a_.Hold(Mebibytes(20));
  holder_b_.Hold(Mebibytes(20));
  holder_a_.done = false;
  EXPECT_EQ(pool().market().GiveBackBeforeGrowth(Mebibytes(20), 1.0),
            Mebibytes(20));
  EXPECT_THAT(holder_a_.Sizes(), ElementsAre(20));
  EXPECT_EQ(pool().market().GiveBackBeforeGrowth(Mebibytes(20), 10.0), 0U);
}

TEST_F(ChunkExchangeTest, AGrowthAsksAStreamOnceAndOnceMoreForEachHolderGiven) {
  int asked = 0;
  holder_a_.when_asked = [&] { ++asked; };
  // Without idle memory, a stream is not asked.
  EXPECT_EQ(pool().market().GiveBackBeforeGrowth(0, 1.0), 0U);
  EXPECT_EQ(asked, 0);
  for (const std::size_t size : {20U, 8U, 2U}) holder_a_.Hold(Mebibytes(size));
  EXPECT_EQ(pool().market().GiveBackBeforeGrowth(Mebibytes(18), 1.0),
            Mebibytes(20));
  EXPECT_EQ(asked, 1);
  // Both release: 9, and the 8 of the second pass.
  holder_b_.Hold(Mebibytes(9));
  EXPECT_EQ(pool().market().GiveBackBeforeGrowth(Mebibytes(17), 10.0),
            Mebibytes(17));
  EXPECT_EQ(asked, 3);
  EXPECT_THAT(holder_a_.Sizes(), ElementsAre(2));
}

TEST_F(ChunkExchangeTest, OfSeveralThatCoverAGrowthTheSmallestIsGiven) {
  holder_a_.Hold(Mebibytes(20));
  holder_b_.Hold(Mebibytes(12));
  EXPECT_EQ(pool().market().GiveBackBeforeGrowth(Mebibytes(10), 1.0),
            Mebibytes(12));
  EXPECT_THAT(holder_a_.Sizes(), ElementsAre(20));
}

TEST_F(ChunkExchangeTest, WhoHasTheLargestGivesNothingBelowWhatOthersHave) {
  for (const std::size_t size : {9U, 2U}) holder_a_.Hold(Mebibytes(size));
  holder_b_.Hold(Mebibytes(5));
  EXPECT_EQ(pool().market().GiveBackBeforeGrowth(Mebibytes(13), 1.0),
            Mebibytes(14));
  EXPECT_THAT(holder_a_.Sizes(), ElementsAre(2));
  EXPECT_THAT(holder_b_.Sizes(), IsEmpty());
}

// While other holders are asked, the first one continues to run.
TEST_F(ChunkExchangeTest, WhatIsInUseAgainBeforeItIsGivenStays) {
  holder_a_.Hold(Mebibytes(20));
  holder_b_.Hold(Mebibytes(4));
  holder_b_.when_asked = [&] { holder_a_.done = false; };
  EXPECT_EQ(pool().market().GiveBackBeforeGrowth(Mebibytes(18), 10.0), 0U);
  holder_a_.done = true;
  EXPECT_EQ(pool().market().GiveBackBeforeGrowth(Mebibytes(22), 10.0), 0U);
  EXPECT_THAT(holder_a_.Sizes(), ElementsAre(20));
}

TEST_F(ChunkExchangeTest, WhatIsTakenBeforeItIsGivenIsNotReplacedByALargerOne) {
  for (const std::size_t size : {40U, 12U}) holder_a_.Hold(Mebibytes(size));
  holder_b_.Hold(Mebibytes(4));
  holder_b_.when_asked = [&] { holder_a_.OfferIdle(Mebibytes(12)); };
  EXPECT_EQ(pool().market().GiveBackBeforeGrowth(Mebibytes(10), 10.0), 0U);
  EXPECT_THAT(holder_a_.Sizes(), ElementsAre(40));
}

TEST_F(ChunkExchangeTest, AHolderThatIsGoneBeforeItGivesIsNotAsked) {
  for (const std::size_t growth : {18U, 23U}) {
    auto passing = std::make_unique<TestHolder>(pool(), c_);
    passing->Hold(Mebibytes(20));
    TestHolder after(pool(), a_);
    after.Hold(Mebibytes(4));
    after.when_asked = [&] { passing.reset(); };
    EXPECT_EQ(pool().market().GiveBackBeforeGrowth(Mebibytes(growth), 10.0),
              0U);
    EXPECT_EQ(passing, nullptr);
    EXPECT_THAT(after.Sizes(), ElementsAre(4));
  }
}

TEST_F(ChunkExchangeTest, WhatIsInUseAgainByTheSecondLookStays) {
  holder_a_.Hold(Mebibytes(9));
  {
    TestHolder passing(pool(), c_);
    passing.Hold(Mebibytes(4));
    bool is_first = true;
    passing.when_asked = [&] {
      // The largest is released after the first pass; then this one is in use.
      if (!std::exchange(is_first, false)) passing.done = false;
    };
    EXPECT_EQ(pool().market().GiveBackBeforeGrowth(Mebibytes(13), 10.0),
              Mebibytes(9));
    EXPECT_THAT(passing.Sizes(), ElementsAre(4));
  }
  EXPECT_EQ(pool().reserved_bytes(), 0U);
}

TEST_F(ChunkExchangeTest, GivesBackNoMoreThanTheLimitAllows) {
  for (int i = 0; i < 4; ++i) holder_a_.Hold(Mebibytes(10));
  // 40 MiB are reserved. Half of them may be released.
  EXPECT_EQ(pool().market().GiveBackBeforeGrowth(Mebibytes(10), 0.5),
            Mebibytes(10));
  holder_b_.Hold(Mebibytes(10));
  EXPECT_EQ(pool().market().GiveBackBeforeGrowth(Mebibytes(10), 0.5),
            Mebibytes(10));
  holder_b_.Hold(Mebibytes(10));
  EXPECT_EQ(pool().market().GiveBackBeforeGrowth(Mebibytes(10), 0.5), 0U);
  EXPECT_EQ(pool().market().GiveBackBeforeGrowth(Mebibytes(10), 0), 0U);
}

}  // namespace
}  // namespace strata
