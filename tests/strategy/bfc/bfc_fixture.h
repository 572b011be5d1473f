#ifndef STRATA_TESTS_STRATEGY_BFC_BFC_FIXTURE_H_
#define STRATA_TESTS_STRATEGY_BFC_BFC_FIXTURE_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "strata/allocation/chunks/chunk_pool.h"
#include "strata/strategy/bfc/bfc_allocator.h"
#include "strata/tests/strategy/mebibyte.h"
#include "strata/tests/testing/devices/scripted_system.h"

namespace strata {

inline BfcOptions BfcLimit(std::size_t bytes) {
  BfcOptions options;
  options.memory_limit_bytes = bytes;
  return options;
}

// One region of `bytes`, reserved as a whole.
inline BfcOptions BfcWhole(std::size_t bytes) {
  BfcOptions options = BfcLimit(bytes);
  options.allow_growth = false;
  return options;
}

// A BfcAllocator over a system that the test scripts. The destructor frees the
// remaining blocks, and expects that the system then holds nothing.
class BfcPool {
 public:
  explicit BfcPool(const BfcOptions& options,
                   const std::function<void(ScriptedSystem&)>& script = {},
                   std::shared_ptr<Reclaimer> reclaimer = nullptr)
      : system_(std::make_shared<ScriptedSystem>()) {
    if (script) script(*system_);
    pool_ = std::make_shared<ChunkPool>(system_, 0, std::move(reclaimer));
    bfc_ = std::make_unique<BfcAllocator>(
        pool_, std::make_shared<ChainStream>(), options);
  }
  BfcPool(const BfcPool&) = delete;
  BfcPool& operator=(const BfcPool&) = delete;
  ~BfcPool() {
    while (!live_.empty()) Free(live_.back());
    EXPECT_TRUE(bfc_->IsConsistent());
    bfc_.reset();
    EXPECT_EQ(system_->held_bytes(), 0U);
  }

  BfcAllocator& bfc() { return *bfc_; }
  ScriptedSystem& system() { return *system_; }
  ChunkPool& pool() { return *pool_; }
  const Failure& failure() const { return failure_; }

  // Null if there is no memory; failure() describes the cause.
  Allocation* Take(const Request& request) {
    failure_ = Failure();
    Allocation* allocation = bfc_->TryAllocate(request, failure_);
    if (allocation != nullptr) live_.push_back(allocation);
    return allocation;
  }
  Allocation* Take(std::size_t bytes) { return Take(Request{bytes}); }
  std::vector<Allocation*> TakeMany(const std::vector<std::size_t>& sizes) {
    std::vector<Allocation*> taken;
    for (const std::size_t bytes : sizes) taken.push_back(Take(bytes));
    return taken;
  }
  void Free(Allocation* allocation) {
    live_.erase(std::find(live_.begin(), live_.end(), allocation));
    bfc_->DoFree(allocation);
  }

  // Offset from the first address that the system returned; -1 for null.
  static std::int64_t Offset(const Allocation* allocation) {
    if (allocation == nullptr) return -1;
    return static_cast<std::int64_t>(
        reinterpret_cast<std::uintptr_t>(allocation->data()) -
        (std::uintptr_t{1} << 40));
  }
  std::vector<std::size_t> RegionBytes() const {
    std::vector<std::size_t> bytes;
    for (const auto& region : bfc_->Snapshot().regions) {
      bytes.push_back(region.size);
    }
    return bytes;
  }
  std::size_t hint_bytes() const { return bfc_->Snapshot().growth_hint_bytes; }

 private:
  std::shared_ptr<ScriptedSystem> system_;
  std::shared_ptr<ChunkPool> pool_;
  std::unique_ptr<BfcAllocator> bfc_;
  std::vector<Allocation*> live_;
  Failure failure_;
};

}  // namespace strata

#endif  // STRATA_TESTS_STRATEGY_BFC_BFC_FIXTURE_H_
