// cuda_malloc_async with power-of-two sizes. The cache keeps all of them.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "strata/strategy/blocks/front_cache_policy.h"
#include "strata/strategy/cuda_malloc_async/options.h"
#include "strata/tests/strategy/cuda_malloc_async/cuda_malloc_async_cache_fixture.h"

namespace strata {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;

class CudaMallocAsyncBinsTest : public CudaMallocAsyncCacheFixture {
 protected:
  CudaMallocAsyncBinsTest() {
    options_.Edit<CudaMallocAsyncOptions>().cuda_malloc_async_bins = "pow2";
  }

  // Bytes of the only driver call of the request; 0 without a call.
  std::size_t AskedFor(const Chain& chain, std::size_t bytes) {
    StartLog();
    const AllocationPtr block = chain->Allocate(bytes);
    const auto calls = CallsOf(DeviceCall::kMallocFromPoolAsync);
    return calls.size() == 1 ? calls[0].bytes : 0;
  }
};

TEST_F(CudaMallocAsyncBinsTest, WhatIsFreedServesAllSizesOfItsBin) {
  const Chain chain = Start();
  AllocationPtr first = chain->Allocate(600);
  void* const address = first->data();
  EXPECT_EQ(chain->stats().in_use_bytes, 1024U);
  EXPECT_EQ(chain->stats().requested_bytes, 600U);
  first.reset();
  EXPECT_EQ(KeptIn(chain), 1024U) << "from the first request on";
  StartLog();
  for (const std::size_t bytes : {513U, 700U, 1024U}) {
    const AllocationPtr again = chain->Allocate(bytes);
    EXPECT_EQ(again->data(), address) << bytes;
    EXPECT_EQ(chain->stats().requested_bytes, bytes);
    EXPECT_EQ(chain->stats().in_use_bytes, 1024U);
  }
  EXPECT_TRUE(log_.empty());
  EXPECT_EQ(AskedFor(chain, 512), 512U);
  EXPECT_EQ(AskedFor(chain, 1025), 2048U);
  EXPECT_EQ(KeptIn(chain), 512U + 1024U + 2048U);
}

TEST_F(CudaMallocAsyncBinsTest, TheHitPathFindsThem) {
  const Chain chain = Start();
  chain->Allocate(600).reset();
  HitPath* const path = chain->hit_path();
  ASSERT_NE(path, nullptr);
  Block* block = nullptr;
  {
    const std::lock_guard<ChainLock> guard(*path->hit_lock());
    block = path->Take(700);
  }
  ASSERT_NE(block, nullptr);
  EXPECT_EQ(block->size, 1024U);
  EXPECT_EQ(chain->stats().requested_bytes, 700U);
  {
    const std::lock_guard<ChainLock> guard(*path->hit_lock());
    EXPECT_TRUE(path->Give(block));
  }
  EXPECT_EQ(chain->stats().requested_bytes, 0U);
  EXPECT_EQ(KeptIn(chain), 1024U);
}

// Not only 1/256 of the chain's memory, and not only small blocks.
TEST_F(CudaMallocAsyncBinsTest, KeepsAllThatIsFreed) {
  const Chain chain = Start();
  Admit(chain, Mebibytes(7), 3).clear();
  Admit(chain, 1000, 40).clear();
  EXPECT_EQ(KeptIn(chain), Mebibytes(24) + Kibibytes(40));
  StartLog();
  Admit(chain, Mebibytes(5), 3).clear();
  Admit(chain, 600, 40).clear();
  EXPECT_TRUE(log_.empty());
}

TEST_F(CudaMallocAsyncBinsTest, StaysKeptWhileTheDriverGrows) {
  const Chain chain = Start();
  chain->Allocate(Mebibytes(16)).reset();
  const AllocationPtr second = chain->Allocate(Mebibytes(32));
  EXPECT_EQ(pool_->reserved_bytes(), Mebibytes(64));
  EXPECT_EQ(KeptIn(chain), Mebibytes(16));
}

TEST_F(CudaMallocAsyncBinsTest, GoesBackBeforeARequestIsRefused) {
  const Chain chain = Start();
  chain->Allocate(Mebibytes(32)).reset();
  ASSERT_EQ(KeptIn(chain), Mebibytes(32));
  const Request request{Mebibytes(64), 0, kNoRetry};
  Failure failure;
  const AllocationPtr whole = chain->AllocateOrNull(request, failure);
  EXPECT_NE(whole, nullptr);
  EXPECT_EQ(KeptIn(chain), 0U);
}

TEST_F(CudaMallocAsyncBinsTest, AShortageOfOtherStreamsReachesIt) {
  const Chain chain = Start();
  const Chain other = NewChain();
  other->Allocate(Mebibytes(32)).reset();
  ASSERT_EQ(KeptIn(other), Mebibytes(32));
  EXPECT_NE(chain->Allocate(Mebibytes(40)), nullptr);
  EXPECT_EQ(KeptIn(other), 0U);
}

// So that streams that are busy in turn do not hold their peaks together.
TEST_F(CudaMallocAsyncBinsTest, WhatAnotherStreamKeepsChangesStreams) {
  const Chain chain = Start();
  const Chain other = NewChain();
  std::vector<AllocationPtr> blocks = Admit(other, Mebibytes(4), 2);
  void* const last = blocks.front()->data();
  blocks.pop_back();
  blocks.pop_back();
  other->Allocate(Mebibytes(2)).reset();
  StartLog();
  AllocationPtr block = chain->Allocate(Mebibytes(3));
  EXPECT_EQ(block->data(), last);
  EXPECT_EQ(KeptIn(other), Mebibytes(6)) << "one of the bin";
  EXPECT_THAT(LoggedWork(),
              ElementsAre(Pair(DeviceCall::kStreamQuery, other.stream().uid)));
  EXPECT_EQ(other->stats().in_use_bytes, 0U);
  EXPECT_EQ(other->stats().cache_hits, 0U);
  EXPECT_EQ(chain->stats().in_use_bytes, Mebibytes(4));
  EXPECT_EQ(chain->stats().requested_bytes, Mebibytes(3));
  EXPECT_EQ(chain->stats().cache_misses, 1U);
  // From now on it belongs to the stream that fetched it.
  block.reset();
  EXPECT_EQ(KeptIn(chain), Mebibytes(4));
  StartLog();
  chain->StreamDestroyed(chain.stream());
  const auto frees = CallsOf(DeviceCall::kFreeAsync);
  ASSERT_EQ(frees.size(), 1U);
  EXPECT_EQ(frees[0].stream_uid, chain.stream().uid);
}

TEST_F(CudaMallocAsyncBinsTest, StreamsByTurnsHoldNoMoreThanOne) {
  const Chain chain = Start();
  const Chain other = NewChain();
  for (int i = 0; i < 4; ++i) {
    Admit(i % 2 == 0 ? chain : other, Mebibytes(7), 4).clear();
  }
  EXPECT_EQ(pool_->reserved_bytes(), Mebibytes(32));
}

TEST_F(CudaMallocAsyncBinsTest, WhatIsSmallStaysWithItsStream) {
  const Chain chain = Start();
  const Chain other = NewChain();
  other->Allocate(Mebibytes(1)).reset();
  other->Allocate(Mebibytes(2)).reset();
  const AllocationPtr small = chain->Allocate(Mebibytes(1));
  EXPECT_EQ(KeptIn(other), Mebibytes(3));
  const AllocationPtr large = chain->Allocate(Mebibytes(2));
  EXPECT_EQ(KeptIn(other), Mebibytes(1));
}

TEST_F(CudaMallocAsyncBinsTest, AStreamWithWorkLeftKeepsItsOwn) {
  setting_.progress = "lazy";
  const Chain chain = Start();
  const Chain other = NewChain();
  AllocationPtr block = other->Allocate(Mebibytes(4));
  void* const kept = block->data();
  EXPECT_EQ(device().MemsetAsync(reinterpret_cast<DevicePtr>(kept), 0, 1,
                                 other.stream()),
            Status::kSuccess);
  block.reset();
  AllocationPtr first = chain->Allocate(Mebibytes(4));
  EXPECT_NE(first->data(), kept);
  EXPECT_EQ(KeptIn(other), Mebibytes(4));
  EXPECT_EQ(other->Allocate(Mebibytes(4))->data(), kept);
  EXPECT_EQ(device().StreamSynchronize(other.stream()), Status::kSuccess);
  const AllocationPtr second = chain->Allocate(Mebibytes(4));
  EXPECT_EQ(second->data(), kept);
}

// If completion cannot be proven, the block is not passed on.
TEST_F(CudaMallocAsyncBinsTest, AStreamThatCannotBeAskedKeepsItsOwn) {
  const Chain chain = Start();
  const Chain other = NewChain();
  other->Allocate(Mebibytes(4)).reset();
  Fail(DeviceCall::kStreamQuery);
  StartLog();
  const AllocationPtr block = chain->Allocate(Mebibytes(4));
  EXPECT_EQ(KeptIn(other), Mebibytes(4));
  EXPECT_THAT(
      LoggedWork(),
      ElementsAre(Pair(DeviceCall::kStreamQuery, other.stream().uid),
                  Pair(DeviceCall::kMallocFromPoolAsync, chain.stream().uid)));
}

// The lock of a stream without such a bin is not taken: its thread may hold it
// all the time.
TEST_F(CudaMallocAsyncBinsTest, OnlyWhoKeepsSuchABinIsDisturbed) {
  const Chain chain = Start();
  const Chain other = NewChain();
  other->Allocate(Mebibytes(4)).reset();
  other->Allocate(1024).reset();
  AllocationPtr larger;
  {
    const std::lock_guard<ChainLock> guard(*other->hit_path()->hit_lock());
    std::thread([&] { larger = chain->Allocate(Mebibytes(8)); }).join();
  }
  EXPECT_NE(larger, nullptr);
}

TEST_F(CudaMallocAsyncBinsTest, WhoIsBusyIsNotWaitedFor) {
  const Chain chain = Start();
  const Chain other = NewChain();
  other->Allocate(Mebibytes(4)).reset();
  AllocationPtr block;
  {
    const std::lock_guard<ChainLock> guard(*other->hit_path()->hit_lock());
    std::thread([&] { block = chain->Allocate(Mebibytes(4)); }).join();
  }
  EXPECT_NE(block, nullptr);
  EXPECT_EQ(KeptIn(other), Mebibytes(4));
}

// The owner would depend on the completion time of a stream.
TEST_F(CudaMallocAsyncBinsTest, DeterministicStreamsKeepTheirOwn) {
  options_.Edit<CudaMallocAsyncOptions>().cuda_malloc_async_deterministic =
      true;
  const Chain chain = Start();
  const Chain other = NewChain();
  other->Allocate(Mebibytes(4)).reset();
  const AllocationPtr block = chain->Allocate(Mebibytes(4));
  EXPECT_EQ(KeptIn(other), Mebibytes(4));
}

TEST_F(CudaMallocAsyncBinsTest, NothingIsFetchedBesideACapture) {
  const Chain chain = Start();
  const Chain other = NewChain();
  other->Allocate(Mebibytes(4)).reset();
  BeginCapture(other);
  AllocationPtr block = chain->Allocate(Mebibytes(4));
  EXPECT_EQ(KeptIn(other), Mebibytes(4));
  EndCapture(other);
  block.reset();
  EXPECT_EQ(KeptIn(chain), 0U) << "allocated beside a capture";
  block = chain->Allocate(Mebibytes(4));
  EXPECT_EQ(KeptIn(other), 0U);
}

// Nor can it use blocks cached by other streams, unless they were released
// before.
TEST_F(CudaMallocAsyncBinsTest, BesideACaptureThereIsWhatWasReleasedBefore) {
  const Chain chain = Start();
  const Chain other = NewChain();
  const Chain capturing = NewChain();
  for (const bool has_released : {false, true}) {
    Admit(other, Mebibytes(16), 2).clear();
    if (has_released) other->Release();
    BeginCapture(capturing);
    Failure failure;
    const AllocationPtr block =
        chain->AllocateOrNull(Request{Mebibytes(40)}, failure);
    EXPECT_EQ(block != nullptr, has_released);
    EXPECT_EQ(KeptIn(other), has_released ? 0U : Mebibytes(32));
    EndCapture(capturing);
  }
}

// The existing streams take turns.
TEST_F(CudaMallocAsyncBinsTest, OfManyStreamsAllPartWithTheirsInTheEnd) {
  const Chain chain = Start();
  std::vector<Chain> others;
  while (others.size() < HolderList::kMostAsked + 8) {
    others.push_back(NewChain());
  }
  others.back()->Allocate(Mebibytes(2)).reset();
  std::vector<AllocationPtr> blocks;
  while (blocks.size() < 3) blocks.push_back(chain->Allocate(Mebibytes(2)));
  EXPECT_EQ(KeptIn(others.back()), 0U);
}

TEST_F(CudaMallocAsyncBinsTest, GoesBackBeforeAWaitForWhatIsPending) {
  options_.Edit<CudaMallocAsyncOptions>()
      .cuda_malloc_async_pool_memory_throttle_ratio = 0.5;
  setting_.progress = "manual";
  const Chain chain = Start();
  FreeMarked(chain->Allocate(Mebibytes(8)), marker_);
  Admit(chain, Mebibytes(8), 3).clear();
  ASSERT_EQ(KeptIn(chain), Mebibytes(24));
  const AllocationPtr first = chain->Allocate(Mebibytes(1));
  StartLog();
  const AllocationPtr second = chain->Allocate(Kibibytes(1));
  EXPECT_EQ(KeptIn(chain), 0U);
  EXPECT_EQ(CallsOf(DeviceCall::kStreamWaitEvent).size(), 0U);
}

TEST_F(CudaMallocAsyncBinsTest, ReleaseGivesItBack) {
  const Chain chain = Start();
  Admit(chain, Mebibytes(3), 4).clear();
  EXPECT_EQ(chain->Release(), Mebibytes(32));
  EXPECT_EQ(KeptIn(chain), 0U);
  EXPECT_EQ(pool_->reserved_bytes(), 0U);
}

// A bin without a request in the last 1024 calls.
TEST_F(CudaMallocAsyncBinsTest, BinsThatAreNotUsedAreGivenUp) {
  const Chain chain = Start();
  chain->Allocate(4096).reset();
  std::vector<AllocationPtr> others =
      Admit(chain, 1000, 2 * FrontCache::kSweep + 1);
  EXPECT_EQ(KeptIn(chain), 0U);
}

TEST_F(CudaMallocAsyncBinsTest, AboveTheLargestBinNothingIsRoundedOrKept) {
  options_.Edit<FrontCacheOptions>().front_cache_max_block_bytes = Kibibytes(3);
  const Chain chain = Start();
  EXPECT_EQ(AskedFor(chain, 1500), 2048U);
  EXPECT_EQ(AskedFor(chain, 2049), 2304U);
  EXPECT_EQ(AskedFor(chain, 4096), 4096U);
  EXPECT_EQ(KeptIn(chain), 2048U);
}

// A size that is never cached is not rounded.
TEST_F(CudaMallocAsyncBinsTest, WhileACaptureIsAnnouncedSizesAreAsAsked) {
  const Chain chain = Start();
  BeginCapture(chain);
  EXPECT_EQ(AskedFor(chain, 600), 768U);
  EndCapture(chain);
  EXPECT_EQ(AskedFor(chain, 600), 1024U);
}

TEST_F(CudaMallocAsyncBinsTest, WithoutATimelineSizesAreAsAsked) {
  setting_.knows_captures = false;
  const Chain chain = Start();
  EXPECT_EQ(AskedFor(chain, 600), 768U);
}

// A bin that does not fit is no reason to refuse.
TEST_F(CudaMallocAsyncBinsTest, WhereTheBinDoesNotFitTheRequestMay) {
  setting_.limit_bytes = Mebibytes(60);
  const Chain chain = Start();
  const AllocationPtr live = chain->Allocate(Mebibytes(20));
  const Request request{Mebibytes(20), 0, kNoRetry};
  Failure failure;
  AllocationPtr exact = chain->AllocateOrNull(request, failure);
  ASSERT_NE(exact, nullptr);
  EXPECT_EQ(chain->stats().in_use_bytes, Mebibytes(52));
  // It is not cached either, because no request would have its size.
  exact.reset();
  EXPECT_EQ(KeptIn(chain), 0U);
  EXPECT_EQ(chain->stats().failures, 0U);
}

TEST_F(CudaMallocAsyncBinsTest, ABinThatDoesNotFitEmptiesNothing) {
  setting_.limit_bytes = Mebibytes(60);
  const Chain chain = Start();
  const AllocationPtr live = chain->Allocate(Mebibytes(20));
  chain->Allocate(1024).reset();
  StartLog();
  EXPECT_NE(chain->Allocate(Mebibytes(20)), nullptr);
  EXPECT_EQ(KeptIn(chain), 1024U);
  EXPECT_EQ(CallsOf(DeviceCall::kMallocFromPoolAsync).size(), 1U);
}

TEST_F(CudaMallocAsyncBinsTest, WhatIsKeptMakesRoomForTheRequestAlone) {
  setting_.limit_bytes = Mebibytes(40);
  const Chain chain = Start();
  const AllocationPtr live = chain->Allocate(Mebibytes(8));
  chain->Allocate(Mebibytes(16)).reset();
  const Request request{Mebibytes(24), 0, kNoRetry};
  Failure failure;
  EXPECT_NE(chain->AllocateOrNull(request, failure), nullptr);
  EXPECT_EQ(KeptIn(chain), 0U);
}

TEST_F(CudaMallocAsyncBinsTest, ARefusalNamesWhatWasAskedFor) {
  const Chain chain = Start();
  chain->Allocate(1000).reset();
  const Request request{Mebibytes(65), 0, kNoRetry};
  Failure failure;
  EXPECT_EQ(chain->AllocateOrNull(request, failure), nullptr);
  EXPECT_EQ(failure.reason, Failure::Reason::kDeviceMemory);
  EXPECT_EQ(failure.requested_bytes, Mebibytes(65));
  EXPECT_EQ(failure.rounded_bytes, Mebibytes(65)) << "not 128 MiB";
  EXPECT_EQ(KeptIn(chain), 1024U) << "it could not have helped";
  EXPECT_EQ(chain->stats().failures, 1U);
  const Request absurd{SIZE_MAX, 0, kNoRetry};
  EXPECT_EQ(chain->AllocateOrNull(absurd, failure), nullptr);
  EXPECT_EQ(failure.reason, Failure::Reason::kTooLarge);
}

}  // namespace
}  // namespace strata
