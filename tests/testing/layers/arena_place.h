#ifndef STRATA_TESTS_TESTING_LAYERS_ARENA_PLACE_H_
#define STRATA_TESTS_TESTING_LAYERS_ARENA_PLACE_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "strata/allocation/decorator.h"
#include "strata/allocation/decorators/retry_allocator.h"
#include "strata/allocation/reclaim/reclaimer.h"
#include "strata/allocation/system/system_allocator.h"

namespace strata {

// A system of a few bytes at made-up addresses. Allocates first fit, without
// rounding.
//
// Threads: any thread.
class ArenaSystem final : public SystemAllocator {
 public:
  explicit ArenaSystem(std::size_t bytes)
      : SystemAllocator(DevicePlace(0), 1), bytes_(bytes) {}

  std::size_t live_bytes() const {
    const std::lock_guard<std::mutex> guard(mutex_);
    return live_bytes_;
  }
  std::optional<std::uint64_t> CountIfUnused() const {
    const std::lock_guard<std::mutex> guard(mutex_);
    return live_.empty() ? std::optional(count_) : std::nullopt;
  }
  const char* name() const override { return "arena"; }

 private:
  void* Obtain(const Request& request, Failure& failure) noexcept override {
    const std::lock_guard<std::mutex> guard(mutex_);
    std::size_t at = 1;  // an address of 0 would be no memory
    for (const auto& [begin, bytes] : live_) {
      if (begin - at >= request.bytes) break;
      at = begin + bytes;
    }
    if (bytes_ + 1 - at >= request.bytes) {
      live_[at] = request.bytes;
      live_bytes_ += request.bytes;
      ++count_;
      return reinterpret_cast<void*>(at);
    }
    failure.reason = Failure::Reason::kDeviceMemory;
    failure.device_free_bytes = bytes_ - live_bytes_;
    failure.device_total_bytes = bytes_;
    return nullptr;
  }
  Status Return(void* data, std::size_t bytes) noexcept override {
    const std::lock_guard<std::mutex> guard(mutex_);
    live_.erase(reinterpret_cast<std::size_t>(data));
    live_bytes_ -= bytes;
    return Status::kSuccess;
  }

  const std::size_t bytes_;
  mutable std::mutex mutex_;
  std::map<std::size_t, std::size_t>
      live_;                    // begin to bytes; guarded by mutex_
  std::size_t live_bytes_ = 0;  // guarded by mutex_
  std::uint64_t count_ = 0;     // allocations made; guarded by mutex_
};

// The points of a call at which a test can run its hook.
enum class CallPoint { kBeforeSearch, kAfterSearch, kBeforeFree, kAfterFree };

// Replaces the strategy of an ArenaPlace. It forwards to the ladder, and calls
// a hook before and after each call.
class HookedAllocator final : public Decorator {
 public:
  using Hook = std::function<void(CallPoint)>;

  HookedAllocator(std::shared_ptr<Allocator> underlying, Hook hook)
      : Decorator(std::move(underlying)), hook_(std::move(hook)) {}

  void set_ladder(std::shared_ptr<Reclaimer> ladder) {
    ladder_ = std::move(ladder);
  }
  std::uint64_t searches() const { return searches_; }

  Allocation* TryAllocate(const Request& request,
                          Failure& failure) noexcept override {
    ++searches_;
    Call(CallPoint::kBeforeSearch);
    Allocation* found = underlying()->TryAllocate(request, failure);
    Call(CallPoint::kAfterSearch);
    return found;
  }
  void DoFree(Allocation* allocation) noexcept override {
    Call(CallPoint::kBeforeFree);
    underlying()->DoFree(allocation);
    Call(CallPoint::kAfterFree);
  }
  const char* name() const override { return "hooked"; }
  Reclaimer* reclaimer() const override { return ladder_.get(); }

 private:
  void Call(CallPoint point) const {
    if (hook_) hook_(point);
  }

  const Hook hook_;
  std::shared_ptr<Reclaimer> ladder_;
  std::atomic<std::uint64_t> searches_{0};
};

// A RetryAllocator over an arena, with everything that it needs to wait.
class ArenaPlace final : private PlaceUsage {
 public:
  // With `knows_usage`, `retry.usage` reports the arena's usage; otherwise it
  // is null.
  ArenaPlace(std::size_t bytes, RetryOptions retry,
             const HookedAllocator::Hook& hook = nullptr,
             bool knows_usage = true)
      : system_(std::make_shared<ArenaSystem>(bytes)),
        hooked_(std::make_shared<HookedAllocator>(system_, hook)) {
    if (knows_usage) retry.usage = this;
    ladder_ = std::make_shared<Reclaimer>(retry);
    hooked_->set_ladder(ladder_);
    retry_ = std::make_shared<RetryAllocator>(hooked_);
  }

  RetryAllocator& operator*() { return *retry_; }
  RetryAllocator* operator->() { return retry_.get(); }
  const std::shared_ptr<Reclaimer>& ladder() const { return ladder_; }
  RetryQueue& queue() { return ladder_->retry(); }
  std::uint64_t searches() const { return hooked_->searches(); }
  std::size_t live_bytes() const { return system_->live_bytes(); }

 private:
  std::size_t LiveBytes() const noexcept override { return live_bytes(); }
  std::optional<std::uint64_t> CountIfUnused() const noexcept override {
    return system_->CountIfUnused();
  }

  std::shared_ptr<ArenaSystem> system_;
  std::shared_ptr<HookedAllocator> hooked_;
  std::shared_ptr<Reclaimer> ladder_;
  std::shared_ptr<RetryAllocator> retry_;
};

}  // namespace strata

#endif  // STRATA_TESTS_TESTING_LAYERS_ARENA_PLACE_H_
