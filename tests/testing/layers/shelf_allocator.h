#ifndef STRATA_TESTS_TESTING_LAYERS_SHELF_ALLOCATOR_H_
#define STRATA_TESTS_TESTING_LAYERS_SHELF_ALLOCATOR_H_

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "strata/allocation/decorator.h"
#include "strata/platform/locks/spin_lock.h"

namespace strata {

// The simplest possible strategy, for tests of layers. Freed blocks go to a
// shelf, and the smallest block that fits serves a request. Fails the test if
// it is called with a lock held.
//
// Threads: any thread.
class ShelfAllocator final : public Decorator {
 public:
  explicit ShelfAllocator(std::shared_ptr<Allocator> pool)
      : Decorator(std::move(pool)) {
    shelf_.reserve(kMost);
  }
  ~ShelfAllocator() override {
    Release();
    EXPECT_EQ(live_, 0U) << "destroyed with live blocks";
  }

  std::uint64_t live() const {
    const std::lock_guard<SpinLock> guard(lock_);
    return live_;
  }

  Allocation* TryAllocate(const Request& request,
                          Failure& failure) noexcept override {
    EXPECT_EQ(HeldLocks(), 0);
    Allocation* allocation = Take(request.bytes);
    if (allocation == nullptr && (request.flags & kNoGrowth) != 0) {
      failure = Failure();
      failure.reason = Failure::Reason::kNoGrowth;
      return nullptr;
    }
    if (allocation == nullptr) {
      allocation = Decorator::TryAllocate(request, failure);
    }
    if (allocation == nullptr) return nullptr;
    allocation->block()->flags = kBlockLive;
    allocation->block()->requested = request.bytes;
    const std::lock_guard<SpinLock> guard(lock_);
    ++live_;
    return allocation;
  }
  void DoFree(Allocation* allocation) noexcept override {
    EXPECT_EQ(HeldLocks(), 0);
    CheckLive(*allocation->block(), name());
    allocation->block()->flags = 0;
    const std::lock_guard<SpinLock> guard(lock_);
    --live_;
    EXPECT_LT(shelf_.size(), kMost);
    shelf_.push_back(allocation);
  }
  std::size_t Release() noexcept override {
    std::size_t bytes = 0;
    while (Allocation* allocation = Take(0)) {
      bytes += allocation->size();
      allocation->block()->flags = kBlockLive;
      underlying()->DoFree(allocation);
    }
    return bytes;
  }
  const char* name() const override { return "shelf"; }
  HitPath* hit_path() override { return nullptr; }

 private:
  static constexpr std::size_t kMost = 4096;

  Allocation* Take(std::size_t bytes) {
    const std::lock_guard<SpinLock> guard(lock_);
    auto best = shelf_.end();
    for (auto i = shelf_.begin(); i != shelf_.end(); ++i) {
      if ((*i)->block()->size < bytes) continue;
      if (best == shelf_.end() ||
          (*i)->block()->size < (*best)->block()->size) {
        best = i;
      }
    }
    if (best == shelf_.end()) return nullptr;
    Allocation* const taken = std::exchange(*best, shelf_.back());
    shelf_.pop_back();
    return taken;
  }

  mutable SpinLock lock_;
  std::vector<Allocation*> shelf_;  // guarded by lock_
  std::uint64_t live_ = 0;          // guarded by lock_
};

}  // namespace strata

#endif  // STRATA_TESTS_TESTING_LAYERS_SHELF_ALLOCATOR_H_
