#include "strata/allocation/chunks/memory_budget.h"

#include <algorithm>
#include <mutex>

#include "strata/allocation/failure.h"
#include "strata/base/store_max.h"

namespace strata {
namespace {

// More than any device or host has. Sums of smaller sizes do not overflow, and
// indices of free blocks support all of them.
constexpr std::size_t kMaxRangeBytes = std::size_t{1} << 48;

}  // namespace

bool MemoryBudget::Claim(std::size_t bytes, Failure& failure) noexcept {
  if (bytes >= kMaxRangeBytes) {
    return Refuse(Failure::Reason::kTooLarge, bytes, 0, failure);
  }
  std::size_t claimed = claimed_bytes_.load();
  do {
    const std::size_t held = claimed + unreturned_bytes();
    if (limit_bytes_ != 0 &&
        (held > limit_bytes_ || bytes > limit_bytes_ - held)) {
      return Refuse(Failure::Reason::kLimit, bytes, held, failure);
    }
  } while (!claimed_bytes_.compare_exchange_weak(claimed, claimed + bytes));
  return true;
}

void MemoryBudget::Unclaim(std::size_t bytes) noexcept {
  claimed_bytes_ -= bytes;
  // The limit may have refused another request meanwhile.
  if (reclaimer_ != nullptr) {
    reclaimer_->retry().NotifyReturn(bytes, Failure::Reason::kLimit);
  }
}

bool MemoryBudget::Refuse(Failure::Reason reason, std::size_t bytes,
                          std::size_t claimed,
                          Failure& failure) const noexcept {
  failure = Failure();
  failure.reason = reason;
  failure.layer = layer_.name();
  failure.reserved_bytes = claimed;
  Explain(failure, bytes);
  return false;
}

void MemoryBudget::Explain(Failure& failure, std::size_t bytes) const noexcept {
  failure.place = layer_.place();
  failure.requested_bytes = bytes;
  failure.rounded_bytes = bytes;
  // A budget without a limit failed by the limit of a budget below.
  if (limit_bytes_ != 0) {
    failure.limit_bytes = limit_bytes_;
    failure.limit_flag = limit_flag_;
  }
  if (failure.reserved_bytes == 0) failure.reserved_bytes = reserved_bytes();
}

bool MemoryBudget::ClaimRange(std::size_t bytes, Failure& failure) noexcept {
  if (Claim(bytes, failure)) {
    range_bytes_ += bytes;
    if (FitsBesideRanges()) return true;
    UnclaimRange(bytes, /*was_refused=*/false);
    Refuse(Failure::Reason::kLimit, bytes, reserved_bytes(), failure);
  }
  ++failures_;
  return false;
}

void MemoryBudget::UnclaimRange(std::size_t bytes, bool was_refused) noexcept {
  range_bytes_ -= bytes;
  Unclaim(bytes);
  if (!was_refused) return;
  ++failures_;
  ForgetFree();
}

void MemoryBudget::Hold(std::size_t claimed, std::size_t bytes,
                        std::size_t pieces) noexcept {
  // The system may return more than was requested; the limit bounds the
  // request.
  claimed_bytes_ += bytes - claimed;
  range_bytes_ += bytes - claimed;
  StoreMax(peak_held_bytes_, (held_bytes_ += bytes) + unreturned_bytes());
  allocations_ += pieces;
}

bool MemoryBudget::Return(std::size_t bytes,
                          FunctionRef<bool()> give) noexcept {
  // Subtract before another thread can obtain the same memory, so that held
  // bytes never exceed the bytes that the system returned. The claim ends
  // later, so that held bytes never exceed the limit.
  held_bytes_ -= bytes;
  if (!give()) {
    held_bytes_ += bytes;
    return false;
  }
  range_bytes_ -= bytes;
  claimed_bytes_ -= bytes;
  ++frees_;
  NotifyIdle();
  return true;
}

bool MemoryBudget::ClaimPages(std::size_t bytes, Failure& failure) noexcept {
  if (!ClaimRange(bytes, failure)) return false;
  if (below_ == nullptr || below_->ClaimPages(bytes, failure)) return true;
  UnclaimRange(bytes, /*was_refused=*/false);
  Explain(failure, bytes);
  return false;
}

void MemoryBudget::UnclaimPages(std::size_t bytes, bool was_refused) noexcept {
  if (below_ != nullptr) below_->UnclaimPages(bytes, was_refused);
  UnclaimRange(bytes, was_refused);
}

bool MemoryBudget::HasRoomNow(Device& device, std::size_t bytes) noexcept {
  for (MemoryBudget* budget = this; budget != nullptr;
       budget = budget->below_) {
    budget->ForgetFree();
  }
  if (RoomBytes(&device) >= bytes) return true;
  for (MemoryBudget* budget = this; budget != nullptr;
       budget = budget->below_) {
    ++budget->failures_;
  }
  return false;
}

void MemoryBudget::HoldPages(std::size_t bytes, std::size_t pieces) noexcept {
  if (below_ != nullptr) below_->HoldPages(bytes, pieces);
  Hold(bytes, bytes, pieces);
}

bool MemoryBudget::ReturnPages(std::size_t bytes,
                               FunctionRef<bool()> give) noexcept {
  const bool is_returned = Return(bytes, [&] {
    return below_ != nullptr ? below_->ReturnPages(bytes, give) : give();
  });
  // Other processes may have allocated or freed memory meanwhile.
  if (is_returned) ForgetFree();
  return is_returned;
}

bool MemoryBudget::ClaimAddresses(std::size_t bytes,
                                  std::size_t most) noexcept {
  if (below_ != nullptr) return below_->ClaimAddresses(bytes, most);
  std::size_t claimed = address_bytes_.load();
  do {
    if (claimed > most || bytes > most - claimed) return false;
  } while (!address_bytes_.compare_exchange_weak(claimed, claimed + bytes));
  return true;
}

void MemoryBudget::UnclaimAddresses(std::size_t bytes) noexcept {
  if (below_ != nullptr) return below_->UnclaimAddresses(bytes);
  address_bytes_ -= bytes;
}

std::shared_ptr<MemoryBudget::DriverHeld> MemoryBudget::driver_held() const {
  const std::lock_guard<std::mutex> guard(driver_mutex_);
  return driver_held_.lock();
}

std::shared_ptr<MemoryBudget::DriverHeld> MemoryBudget::ShareDriverHeld(
    const std::function<std::shared_ptr<DriverHeld>()>& make) {
  std::shared_ptr<DriverHeld> held = driver_held();
  if (held != nullptr) return held;
  std::shared_ptr<DriverHeld> made = make();
  const std::lock_guard<std::mutex> guard(driver_mutex_);
  held = driver_held_.lock();  // another thread may have stored one
  if (held != nullptr) return held;
  driver_held_ = made;
  return made;
}

bool MemoryBudget::FitsBesideRanges() noexcept {
  if (limit_bytes_ == 0) return true;
  const auto held = [this] { return range_bytes_ + unreturned_bytes(); };
  if (held() == 0) return true;
  const std::shared_ptr<DriverHeld> driver = driver_held();
  if (driver == nullptr || !driver->is_own()) return true;
  const auto fits = [&] {
    return driver->ReservedBytes() + held() <= limit_bytes_;
  };
  if (fits()) return true;
  driver->GiveBack();
  return fits();
}

std::size_t MemoryBudget::EstimateFree(Device& device) noexcept {
  const std::size_t reserved = reserved_bytes();
  {
    const std::lock_guard<SpinLock> guard(free_lock_);
    const std::size_t taken =
        reserved - std::min(reserved, reserved_when_asked_);
    const std::size_t given =
        reserved_when_asked_ - std::min(reserved, reserved_when_asked_);
    if (is_free_known_ && taken < kFreeStepBytes && given < kFreeStepBytes) {
      return free_bytes_ + given - std::min(free_bytes_ + given, taken);
    }
  }
  std::size_t free_bytes = 0;
  std::size_t total_bytes = 0;
  if (device.MemGetInfo(&free_bytes, &total_bytes) != Status::kSuccess) {
    return SIZE_MAX;
  }
  const std::lock_guard<SpinLock> guard(free_lock_);
  is_free_known_ = true;
  free_bytes_ = free_bytes;
  reserved_when_asked_ = reserved;
  return free_bytes;
}

void MemoryBudget::ForgetFree() noexcept {
  const std::lock_guard<SpinLock> guard(free_lock_);
  is_free_known_ = false;
}

std::size_t MemoryBudget::RoomBytes(Device* device) noexcept {
  std::size_t room = SIZE_MAX;
  if (below_ != nullptr) {
    room = below_->RoomBytes(device);
  } else if (device != nullptr) {
    room = EstimateFree(*device);
  }
  if (limit_bytes_ != 0) {
    const std::size_t held = claimed_bytes_ + unreturned_bytes();
    room = std::min(room, limit_bytes_ - std::min(limit_bytes_, held));
  }
  last_room_bytes_.store(room, std::memory_order_relaxed);
  return room;
}

std::size_t MemoryBudget::reserved_bytes() const noexcept {
  const std::shared_ptr<DriverHeld> held = driver_held();
  return held_bytes_.load() + unreturned_bytes() +
         (held ? held->ReservedBytes() : 0);
}

Stats MemoryBudget::stats() const {
  Stats stats;
  stats.allocations = allocations_;
  stats.frees = frees_;
  stats.failures = failures_;
  stats.reserved_bytes = held_bytes_ + unreturned_bytes();
  // Another thread may have raised one counter and not yet the other.
  stats.peak_reserved_bytes =
      std::max<std::uint64_t>(peak_held_bytes_, stats.reserved_bytes);
  LimitReserved(stats, limit_bytes_, limit_flag_);
  stats.chunks = stats.allocations - stats.frees;
  if (const std::shared_ptr<DriverHeld> held = driver_held()) {
    stats.reserved_bytes += held->ReservedBytes();
    stats.peak_reserved_bytes += held->PeakReservedBytes();
  }
  return stats;
}

void MemoryBudget::ResetPeak() {
  strata::ResetPeak(peak_held_bytes_, held_bytes_);
  StoreMax(peak_held_bytes_, held_bytes_ + unreturned_bytes());
  if (const std::shared_ptr<DriverHeld> held = driver_held()) {
    held->ResetPeak();
  }
}

}  // namespace strata
