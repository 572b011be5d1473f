// cuda_malloc_async on a thread's own default stream, which no other thread can
// name (platform/cuda/README.md): frees of other threads wait for that thread.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <functional>
#include <thread>
#include <utility>

#include "strata/strategy/cuda_malloc_async/options.h"
#include "strata/tests/strategy/cuda_malloc_async/cuda_malloc_async_cache_fixture.h"

namespace strata {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;

class CudaMallocAsyncThreadStreamTest : public CudaMallocAsyncCacheFixture {
 protected:
  // On the default stream of the test's thread.
  Chain StartHere() {
    Start();
    return NewChain(pool_, device(), device().PerThreadStream());
  }
  static void InAnotherThread(const std::function<void()>& function) {
    std::thread(function).join();
  }
};

TEST_F(CudaMallocAsyncThreadStreamTest, WhatOthersFreeWaitsForItsThread) {
  const Chain chain = StartHere();
  AllocationPtr block = chain->Allocate(Mebibytes(1));
  StartLog();
  InAnotherThread([&] { block.reset(); });
  EXPECT_TRUE(log_.empty()) << "neither refused calls nor a wait";
  EXPECT_EQ(chain->stats().in_use_bytes, 0U);
  EXPECT_EQ(device().Leaks().pool_blocks, 1U);
  block = chain->Allocate(Mebibytes(1));
  EXPECT_THAT(
      LoggedWork(),
      ElementsAre(Pair(DeviceCall::kFreeAsync, chain.stream().uid),
                  Pair(DeviceCall::kMallocFromPoolAsync, chain.stream().uid)));
}

TEST_F(CudaMallocAsyncThreadStreamTest, MarkedMemoryDoesSo) {
  const Chain chain = StartHere();
  AllocationPtr block = chain->Allocate(Mebibytes(1));
  chain->RecordStream(block.get(), marker_);
  StartLog();
  InAnotherThread([&] { block.reset(); });
  EXPECT_TRUE(log_.empty());
  chain->Allocate(1024).reset();
  EXPECT_EQ(CallsOf(DeviceCall::kSynchronize).size(), 0U);
  EXPECT_EQ(device().Leaks().pool_blocks, 0U);
}

TEST_F(CudaMallocAsyncThreadStreamTest, SmallBlocksAreKeptAllTheSame) {
  const Chain chain = StartHere();
  void* const kept = KeepOne(chain, 1024);
  AllocationPtr block = chain->Allocate(1024);
  InAnotherThread([&] { block.reset(); });
  EXPECT_EQ(KeptIn(chain), 1024U);
  EXPECT_EQ(chain->Allocate(1024)->data(), kept);
}

// At the cost of a wait for the device.
TEST_F(CudaMallocAsyncThreadStreamTest, AShortageOfOthersReachesWhatWaits) {
  setting_.limit_bytes = Mebibytes(48);
  const Chain chain = StartHere();
  AllocationPtr block = chain->Allocate(Mebibytes(32));
  InAnotherThread([&] {
    block.reset();
    const Chain other = NewChain();
    EXPECT_NE(other->Allocate(Mebibytes(40)), nullptr);
  });
  EXPECT_EQ(device().Leaks().pool_blocks, 0U);
}

TEST_F(CudaMallocAsyncThreadStreamTest, AShortageOfOthersReachesWhatIsKept) {
  options_.Edit<CudaMallocAsyncOptions>().cuda_malloc_async_bins = "pow2";
  setting_.limit_bytes = Mebibytes(48);
  const Chain chain = StartHere();
  chain->Allocate(Mebibytes(32)).reset();
  ASSERT_EQ(KeptIn(chain), Mebibytes(32));
  InAnotherThread([&] {
    const Chain other = NewChain();
    EXPECT_NE(other->Allocate(Mebibytes(40)), nullptr);
  });
  EXPECT_EQ(KeptIn(chain), 0U);
}

TEST_F(CudaMallocAsyncThreadStreamTest, ReleaseByOthersGivesItBack) {
  const Chain chain = StartHere();
  AllocationPtr block = chain->Allocate(Mebibytes(1));
  KeepOne(chain, 1024);
  InAnotherThread([&] {
    block.reset();
    EXPECT_EQ(chain->Release(), Mebibytes(32));
  });
  EXPECT_EQ(KeptIn(chain), 0U);
  EXPECT_EQ(pool_->reserved_bytes(), 0U);
  EXPECT_TRUE(pool_->market().IsUnused());
}

TEST_F(CudaMallocAsyncThreadStreamTest, TheEndOfTheStreamGivesItToTheDriver) {
  const Chain chain = StartHere();
  AllocationPtr block = chain->Allocate(Mebibytes(1));
  InAnotherThread([&] { block.reset(); });
  StartLog();
  chain->StreamDestroyed(chain.stream());
  chain.chain_stream->Retire();
  const auto frees = CallsOf(DeviceCall::kFreeAsync);
  ASSERT_EQ(frees.size(), 1U);
  EXPECT_EQ(frees[0].stream_uid, chain.stream().uid);
}

TEST_F(CudaMallocAsyncThreadStreamTest, OthersDoNotFetchItsBins) {
  options_.Edit<CudaMallocAsyncOptions>().cuda_malloc_async_bins = "pow2";
  const Chain chain = StartHere();
  chain->Allocate(Mebibytes(4)).reset();
  InAnotherThread([&] {
    const Chain other = NewChain();
    StartLog();
    const AllocationPtr block = other->Allocate(Mebibytes(4));
    EXPECT_THAT(LoggedWork(), ElementsAre(Pair(DeviceCall::kMallocFromPoolAsync,
                                               other.stream().uid)));
  });
  EXPECT_EQ(KeptIn(chain), Mebibytes(4));
}

}  // namespace
}  // namespace strata
