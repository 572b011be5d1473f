#ifndef STRATA_TESTS_STRATEGY_BUDDY_NAIVE_BEST_FIT_FIXTURE_H_
#define STRATA_TESTS_STRATEGY_BUDDY_NAIVE_BEST_FIT_FIXTURE_H_

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "strata/base/size.h"
#include "strata/strategy/buddy/naive_best_fit_allocator.h"
#include "strata/tests/testing/layers/pool_place.h"

namespace strata {

inline StrategyOptions Chunks(std::uint64_t first_mib, std::uint64_t next_mib) {
  StrategyOptions options;
  options.Edit<BuddyOptions>().initial_gpu_memory_in_mb = first_mib;
  options.Edit<BuddyOptions>().reallocate_gpu_memory_in_mb = next_mib;
  return options;
}

// A place with naive_best_fit only.
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
      const std::lock_guard<std::mutex> guard(chunks_mutex_);
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
  std::mutex chunks_mutex_;          // threads may grow at once
  std::vector<std::size_t> chunks_;  // sizes of the system's chunks, in order
  std::unique_ptr<NaiveBestFitAllocator> naive_;
};

}  // namespace strata

#endif  // STRATA_TESTS_STRATEGY_BUDDY_NAIVE_BEST_FIT_FIXTURE_H_
