// The lock that guards a shared strategy: the lock of the only stream in use,
// otherwise the strategy's own lock.

#include <gtest/gtest.h>

#include <atomic>
#include <cstddef>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "strata/allocation/hit/hit_path.h"
#include "strata/strategy/registry.h"
#include "strata/tests/testing/layers/pool_place.h"

namespace strata {
namespace {

class StreamViewLockTest : public ::testing::TestWithParam<std::string> {
 protected:
  std::shared_ptr<Allocator> NewView() {
    return source_.For(place_.NewChainStream());
  }
  LentLock& shared_lock() {
    return *source_.shared()->hit_path()->shared_lock();
  }
  bool IsLentTo(Allocator& view) {
    return shared_lock().IsLentTo(*view.hit_path()->hit_lock());
  }

  static StrategyOptions Options() {
    StrategyOptions options;
    options.auto_growth_chunk_size_in_mb = 8;
    return options;
  }

  PoolPlace place_;
  struct Closer {
    PoolPlace& place;
    ~Closer() { place.frees()->Close(); }
  } closer_{place_};
  StrategySource source_{GetParam(), place_.pool(), Options(), place_.frees()};
};

INSTANTIATE_TEST_SUITE_P(Strategies, StreamViewLockTest,
                         ::testing::Values("bfc", "naive_best_fit", "pool"));

TEST_P(StreamViewLockTest, IsThatOfAStreamAloneFromItsFirstRequestOn) {
  const std::shared_ptr<Allocator> a = NewView();
  EXPECT_FALSE(shared_lock().is_lent());
  a->Allocate(4096).reset();
  EXPECT_TRUE(IsLentTo(*a));
}

TEST_P(StreamViewLockTest, IsItsOwnOnceASecondStreamIsInUse) {
  const std::shared_ptr<Allocator> a = NewView();
  const std::shared_ptr<Allocator> b = NewView();
  a->Allocate(4096).reset();
  EXPECT_TRUE(IsLentTo(*a));
  b->Allocate(4096).reset();
  EXPECT_FALSE(shared_lock().is_lent());
  a->Allocate(4096).reset();
  EXPECT_FALSE(shared_lock().is_lent());
}

TEST_P(StreamViewLockTest, IsLentAgainOnceTheOtherStreamIsGone) {
  const std::shared_ptr<Allocator> a = NewView();
  std::shared_ptr<Allocator> b = NewView();
  a->Allocate(4096).reset();
  b->Allocate(4096).reset();
  b.reset();
  a->Allocate(4096).reset();
  EXPECT_TRUE(IsLentTo(*a));
}

TEST_P(StreamViewLockTest, IsItsOwnOnceTheStreamThatHadItIsGone) {
  std::shared_ptr<Allocator> a = NewView();
  a->Allocate(4096).reset();
  a.reset();
  EXPECT_FALSE(shared_lock().is_lent());
  // No thread holds it.
  EXPECT_EQ(source_.shared()->stats().in_use_bytes, 0U);
}

TEST_P(StreamViewLockTest, ServesHitsWithoutItsOwn) {
  const std::shared_ptr<Allocator> a = NewView();
  a->Allocate(4096).reset();
  HitPath& path = *a->hit_path();
  const HitGuard guard(path);
  // A thread that takes it would wait forever.
  const std::lock_guard<ChainLock> own(
      *source_.shared()->hit_path()->hit_lock());
  Block* const block = path.Take(4096);
  ASSERT_NE(block, nullptr);
  EXPECT_TRUE(path.Give(block));
}

// Hits of one stream, while another one is created and destroyed and statistics
// are read.
TEST_P(StreamViewLockTest, GuardsTheStrategyWhoeverHasIt) {
  constexpr int kRounds = 200;
  constexpr std::size_t kBytes = 4096;
  const std::shared_ptr<Allocator> a = NewView();
  a->Allocate(kBytes).reset();
  std::atomic<bool> stop{false};
  std::thread hits([&] {
    HitPath& path = *a->hit_path();
    while (!stop) {
      std::vector<Block*> taken;
      for (int i = 0; i < 8; ++i) {
        const HitGuard guard(path);
        if (Block* const block = path.Take(kBytes)) taken.push_back(block);
      }
      for (Block* const block : taken) {
        bool is_given = false;
        {
          const HitGuard guard(path);
          is_given = path.Give(block);
        }
        if (!is_given) a->DoFree(block->allocation());
      }
      a->Allocate(kBytes).reset();
    }
  });
  std::thread looks([&] {
    while (!stop) {
      const Stats stats = source_.shared()->stats();
      EXPECT_LE(stats.largest_free_bytes, stats.reserved_bytes);
      source_.shared()->Release();
    }
  });
  for (int i = 0; i < kRounds; ++i) {
    const std::shared_ptr<Allocator> b = NewView();
    const AllocationPtr first = b->Allocate(kBytes);
    const AllocationPtr second = b->Allocate(2 * kBytes);
    EXPECT_NE(first->data(), second->data());
  }
  stop = true;
  hits.join();
  looks.join();
  place_.frees()->Await();
  EXPECT_EQ(source_.shared()->stats().in_use_bytes, 0U);
}

}  // namespace
}  // namespace strata
