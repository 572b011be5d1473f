// The cache of cuda_malloc_async while threads use it, empty it, and announce
// captures.

#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "strata/strategy/cuda_malloc_async/cuda_malloc_async_allocator.h"
#include "strata/tests/strategy/cuda_malloc_async/cuda_malloc_async_fixture.h"

namespace strata {
namespace {

class CudaMallocAsyncCacheThreadsTest
    : public CudaMallocAsyncFixture,
      public ::testing::WithParamInterface<std::string> {
 protected:
  // Each address has one holder at a time, and a thread ends with the state it
  // began with.
  static void UseAndFree(const Chain& chain, int rounds) {
    for (int i = 0; i < rounds; ++i) {
      Failure failure;
      // With bins, one of them is fetched from the other stream.
      const std::size_t bytes =
          i % 4 == 3 ? Mebibytes(2) : std::size_t{256} << (i % 4);
      AllocationPtr first = chain->AllocateOrNull(Request{bytes}, failure);
      AllocationPtr second = chain->AllocateOrNull(Request{bytes}, failure);
      ASSERT_NE(first, nullptr);
      ASSERT_NE(second, nullptr);
      ASSERT_NE(first->data(), second->data());
    }
  }
};

TEST_P(CudaMallocAsyncCacheThreadsTest, NothingIsLostOrGivenTwice) {
  options_.Edit<CudaMallocAsyncOptions>().cuda_malloc_async_bins = GetParam();
  setting_.knows_captures = true;
  Build();
  {
    const Chain chain = NewChain();
    const Chain other = NewChain();
    std::atomic<bool> is_done{false};
    std::vector<std::thread> users;
    for (int t = 0; t < 2; ++t) {
      users.emplace_back([&] { UseAndFree(chain, 2000); });
    }
    users.emplace_back([&] { UseAndFree(other, 2000); });
    std::thread releaser([&] {
      while (!is_done) {
        chain->Release();
        std::this_thread::yield();
      }
    });
    std::thread announcer([&] {
      while (!is_done) {
        timelines_->gate().Announce();
        timelines_->gate().Withdraw();
        std::this_thread::yield();
      }
    });
    for (std::thread& user : users) user.join();
    is_done = true;
    releaser.join();
    announcer.join();
    for (const Chain* used : {&chain, &other}) {
      const auto& strategy =
          static_cast<const CudaMallocAsyncAllocator&>(*used->strategy);
      EXPECT_TRUE(strategy.IsConsistent());
      EXPECT_EQ(strategy.stats().in_use_bytes, 0U);
      EXPECT_EQ(strategy.stats().requested_bytes, 0U);
    }
    EXPECT_TRUE(pool_->market().IsUnused());
  }
  EXPECT_EQ(device().Leaks().pool_blocks, 0U);
}

INSTANTIATE_TEST_SUITE_P(Bins, CudaMallocAsyncCacheThreadsTest,
                         ::testing::Values("none", "pow2"),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace strata
