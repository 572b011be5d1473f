// Threads that free the blocks of other threads, while streams end.

#include <gtest/gtest.h>

#include <atomic>
#include <cctype>
#include <cstddef>
#include <cstdint>
#include <latch>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "strata/facade/allocator_facade.h"
#include "strata/tests/facade/facade_fixture.h"

namespace strata {
namespace {

// Threads allocate blocks and pass them to other threads, which free them.
// Streams are created and destroyed, and the device is so small that requests
// wait for frees.
class HandedOnTest : public FacadeFixture,
                     public testing::WithParamInterface<const char*> {
 protected:
  void Allocate(unsigned seed) {
    std::mt19937 random(seed);
    for (int round = 0; round < 8; ++round) {
      Stream stream;
      ASSERT_EQ(device().StreamCreate(&stream, kStreamNonBlocking),
                Status::kSuccess);
      for (int i = 0; i < 400; ++i) {
        const std::size_t bytes = std::size_t{1} << (8 + random() % 16);
        Failure failure;
        AllocationPtr allocation =
            facade().TryAlloc(kPlace, Request{bytes}, stream, failure);
        if (allocation == nullptr) continue;
        ++met_;
        if (random() % 4 == 0) continue;  // freed by this thread
        const std::lock_guard<std::mutex> guard(mutex_);
        handed_.push_back(std::move(allocation));
      }
      facade().StreamDestroyed(stream);
      ASSERT_EQ(device().StreamDestroy(stream), Status::kSuccess);
    }
  }
  void Free() {
    facade().Alloc(kPlace, 100).reset();
    ++met_;
    freers_known_.count_down();
    while (!is_over_) {
      std::vector<AllocationPtr> taken;
      {
        const std::lock_guard<std::mutex> guard(mutex_);
        std::swap(taken, handed_);
      }
      taken.clear();
      std::this_thread::yield();
    }
  }

  std::mutex mutex_;
  std::vector<AllocationPtr> handed_;  // guarded by mutex_
  std::atomic<std::uint64_t> met_{0};
  std::atomic<bool> is_over_{false};
  // Once the owners wait for memory, a freer that only starts to register would
  // wait with them, and no thread could free.
  std::latch freers_known_{2};
};

TEST_P(HandedOnTest, NothingIsLost) {
  Build(std::string("gpu_allocator_retry_time=1000,") + GetParam());
  std::vector<std::thread> freers;
  for (int i = 0; i < 2; ++i) freers.emplace_back([this] { Free(); });
  freers_known_.wait();
  std::vector<std::thread> owners;
  for (unsigned i = 0; i < 2; ++i) {
    owners.emplace_back([this, i] { Allocate(i); });
  }
  for (int i = 0; i < 20; ++i) {
    // This holds for each stream in turn, and so for their sum.
    const Stats stats = facade().GetStats(kPlace);
    EXPECT_GE(stats.allocations, stats.frees);
    facade().Release(kPlace);
    std::this_thread::yield();
  }
  for (std::thread& owner : owners) owner.join();
  is_over_ = true;
  for (std::thread& freer : freers) freer.join();
  handed_.clear();
  const Stats stats = facade().GetStats(kPlace);
  EXPECT_EQ(stats.allocations, met_);
  EXPECT_EQ(stats.frees, met_);
  EXPECT_EQ(stats.in_use_bytes, 0U);
  EXPECT_EQ(stats.requested_bytes, 0U);
  facade().Release(kPlace);
  EXPECT_EQ(facade().GetStats(kPlace).reserved_bytes, 0U);
}

INSTANTIATE_TEST_SUITE_P(
    All, HandedOnTest,
    testing::Values("strata_stream_lock=word", "strata_stream_lock=biased",
                    "strata_front_cache=off", "strata_exact_peak",
                    "allocator_strategy=bfc"),
    [](const auto& test) {
      std::string name;
      for (const char c : std::string(test.param)) {
        if (std::isalnum(static_cast<unsigned char>(c)) != 0) name += c;
      }
      return name.empty() ? "defaults" : name;
    });

}  // namespace
}  // namespace strata
