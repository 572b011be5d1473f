// The contract of every allocator for several threads (allocator.h).

#include <gtest/gtest.h>

#include <mutex>
#include <random>
#include <thread>
#include <vector>

#include "strata/base/size.h"
#include "strata/tests/contract/contract_fixture.h"
#include "strata/tests/testing/layers/live_ranges.h"

namespace strata {
namespace {

// On a large device: a strategy that allocates most of the rest at each growth
// may leave nothing for the last thread on a small one.
class ContractThreadsTest : public ContractTest {
 protected:
  ContractThreadsTest() {
    ContractCase roomy = GetParam();
    roomy.options.memory_bytes = Gibibytes(64);
    subject_.emplace(roomy);
  }
};

class NullVisitor final : public AllocatorVisitor {
 public:
  void VisitLayer(const Allocator& layer) override { (void)layer.stats(); }
};

// Passes allocations between threads.
class Mailbox {
 public:
  void Put(AllocationPtr allocation) {
    const std::lock_guard<std::mutex> guard(mutex_);
    allocations_.push_back(std::move(allocation));
  }
  AllocationPtr Take() {
    const std::lock_guard<std::mutex> guard(mutex_);
    if (allocations_.empty()) return nullptr;
    AllocationPtr last = std::move(allocations_.back());
    allocations_.pop_back();
    return last;
  }

 private:
  std::mutex mutex_;
  std::vector<AllocationPtr> allocations_;
};

struct Shared {
  Allocator& allocator;
  LiveRanges ranges;
  Mailbox mailbox;
};

void FreeOne(Shared& shared, AllocationPtr allocation) {
  EXPECT_TRUE(shared.ranges.Remove(*allocation));
  allocation.reset();
}

void Work(Shared& shared, unsigned seed) {
  std::mt19937_64 random(seed);
  std::vector<AllocationPtr> mine;
  for (int i = 0; i < 150; ++i) {
    const auto choice = random() % 32;
    if (choice == 0) {
      shared.allocator.Release();
    } else if (choice == 1) {
      NullVisitor visitor;
      shared.allocator.Accept(visitor);
    } else if (choice == 2) {
      shared.allocator.ResetPeak();
    } else if (choice < 8) {
      if (AllocationPtr other = shared.mailbox.Take()) {
        FreeOne(shared, std::move(other));
      }
    } else if (choice < 18 && !mine.empty()) {
      std::swap(mine[random() % mine.size()], mine.back());
      if (random() % 2 == 0) {
        shared.mailbox.Put(std::move(mine.back()));
      } else {
        FreeOne(shared, std::move(mine.back()));
      }
      mine.pop_back();
    } else {
      const std::size_t bytes = 1 + random() % (1U << (6 + random() % 16));
      Failure failure;
      AllocationPtr fresh =
          shared.allocator.AllocateOrNull(Request{bytes}, failure);
      ASSERT_NE(fresh, nullptr) << failure.ToString();
      ASSERT_TRUE(shared.ranges.Add(*fresh));
      mine.push_back(std::move(fresh));
    }
  }
  while (!mine.empty()) {
    FreeOne(shared, std::move(mine.back()));
    mine.pop_back();
  }
}

TEST_P(ContractThreadsTest, ServesManyThreadsAtOnce) {
  const SimLeaks before = LeaksButPools(device());
  Shared shared{allocator(), {}, {}};
  {
    std::vector<std::thread> threads;
    for (unsigned seed = 0; seed < 4; ++seed) {
      threads.emplace_back([&shared, seed] { Work(shared, seed); });
    }
    for (std::thread& thread : threads) thread.join();
  }
  while (AllocationPtr left = shared.mailbox.Take()) {
    FreeOne(shared, std::move(left));
  }
  EXPECT_EQ(shared.ranges.count(), 0U);
  const Stats stats = allocator().stats();
  EXPECT_EQ(stats.requested_bytes, 0U);
  if (std::string(subject().Counter().name()) != "fault") {
    EXPECT_EQ(stats.live_allocations(),
              std::string(subject().Counter().name()) == "chunk_pool"
                  ? subject().place.pool()->stats().chunks
                  : 0U);
  }
  if (GetParam().is_chain() && IsAutoGrowth(GetParam().options.strategy)) {
    EXPECT_TRUE(subject().chain.auto_growth().IsConsistent());
  }
  allocator().Release();
  EXPECT_EQ(LeaksButPools(device()), before);
}

TEST_P(ContractThreadsTest, FreesFromAnotherThread) {
  AllocationPtr allocation = allocator().Allocate(Kibibytes(100));
  std::thread([&allocation] { allocation.reset(); }).join();
  EXPECT_EQ(allocator().stats().requested_bytes, 0U);
  allocator().Release();
  EXPECT_EQ(LeakedAllocations(device()), 0U);
}

INSTANTIATE_TEST_SUITE_P(All, ContractThreadsTest,
                         ::testing::ValuesIn(ContractCases()),
                         [](const auto& one) { return one.param.name; });

}  // namespace
}  // namespace strata
