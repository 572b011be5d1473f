#ifndef STRATA_ALLOCATION_CHUNKS_MEMORY_BUDGET_H_
#define STRATA_ALLOCATION_CHUNKS_MEMORY_BUDGET_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <utility>

#include "strata/allocation/allocator.h"
#include "strata/allocation/reclaim/reclaimer.h"
#include "strata/base/function_ref.h"
#include "strata/platform/device.h"
#include "strata/platform/locks/spin_lock.h"
#include "strata/platform/stream.h"

namespace strata {

// The byte counts of one place: limit, claimed, reserved and peak reserved.
//
// Model: memory is counted as ranges of bytes; a range is a chunk or mapped
//   pages. A range is claimed before the call of the system, so concurrent
//   growth cannot exceed the limit. Then it is held until it is returned.
//   Claimed bytes include held bytes. Memory that a strategy allocates from the
//   driver's pool is only claimed: the pool itself (DriverHeld) counts as
//   reserved. Memory that the system refuses to take back stays reserved. A
//   budget may stand on another budget, which counts the same ranges too.
// Threads: any thread. No lock is held during a call of the driver. Device
//   calls: RoomBytes, HasRoomNow, and DriverHeld if a strategy shares one.
// Source: paddle.md §2 gpu_memory_limit_mb.
class MemoryBudget {
 public:
  class DriverHeld;

  // `layer` is the layer that claims: it is named in failures and reports
  // memory that the system refuses to take back. `below` is the budget below;
  // null: none. `limit_bytes` 0: no limit. `limit_flag` is the flag of the
  // limit; "" if unknown.
  MemoryBudget(const Allocator& layer, MemoryBudget* below,
               std::size_t limit_bytes, const char* limit_flag,
               std::shared_ptr<Reclaimer> reclaimer)
      : layer_(layer),
        below_(below),
        limit_bytes_(limit_bytes),
        limit_flag_(limit_flag),
        reclaimer_(std::move(reclaimer)) {}
  MemoryBudget(const MemoryBudget&) = delete;
  MemoryBudget& operator=(const MemoryBudget&) = delete;

  // Claims bytes that a strategy allocates from the driver's pool. Returns
  // false and sets `failure` if the limit forbids it.
  bool Claim(std::size_t bytes, Failure& failure) noexcept;
  void Unclaim(std::size_t bytes) noexcept;

  // Claims a range. Returns false and sets `failure` if the range and the
  // memory that the driver pools would exceed the limit.
  bool ClaimRange(std::size_t bytes, Failure& failure) noexcept;
  // `was_refused`: the system had no memory.
  void UnclaimRange(std::size_t bytes, bool was_refused) noexcept;
  // Holds `bytes` in `pieces` that the system returned for `claimed` bytes.
  void Hold(std::size_t claimed, std::size_t bytes,
            std::size_t pieces) noexcept;
  // Returns a held range to the system by `give`. If `give` returns false, the
  // system refused it, and it stays counted. Wakes requests that wait for
  // memory.
  bool Return(std::size_t bytes, FunctionRef<bool()> give) noexcept;

  // Makes waiting requests search again, because a chunk or a part of one is
  // idle. Its bytes were counted when its last block was freed.
  void NotifyIdle() const noexcept {
    if (reclaimer_ != nullptr) reclaimer_->retry().NotifyFree(0);
  }

  // Like ClaimRange(), UnclaimRange(), Hold() and Return(), but for mapped
  // pages. They also count in the budgets below.
  bool ClaimPages(std::size_t bytes, Failure& failure) noexcept;
  void UnclaimPages(std::size_t bytes, bool was_refused) noexcept;
  // True if the device has `bytes` free and the limits allow them. Queries the
  // device. If false, counts a failure.
  bool HasRoomNow(Device& device, std::size_t bytes) noexcept;
  void HoldPages(std::size_t bytes, std::size_t pieces) noexcept;
  bool ReturnPages(std::size_t bytes, FunctionRef<bool()> give) noexcept;
  // Claims reserved address space, at most `most` bytes in total, in the lowest
  // budget. Beyond that, returns false and claims nothing.
  bool ClaimAddresses(std::size_t bytes, std::size_t most) noexcept;
  void UnclaimAddresses(std::size_t bytes) noexcept;

  // Returns the DriverHeld that the strategies of this place share, or the
  // result of `make` if there is none. Its memory counts here while a strategy
  // holds it.
  std::shared_ptr<DriverHeld> ShareDriverHeld(
      const std::function<std::shared_ptr<DriverHeld>()>& make);
  // The shared DriverHeld; null if no strategy holds it.
  std::shared_ptr<DriverHeld> driver_held() const;
  // True if ranges and the memory that the driver pools are together within the
  // limit. If not, idle memory of the driver is released first. No driver call
  // while there are no ranges or no limit. If two threads grow, one in ranges
  // and one in the driver's pool, at least one sees the growth of the other.
  bool FitsBesideRanges() noexcept;

  // Estimate of the bytes by which the place can grow: the smaller of the bytes
  // left by the limit and the free bytes of `device`, if it is not null.
  // SIZE_MAX if there is no bound.
  //
  // Cost: one MemGetInfo per GiB of growth, and after each refusal; 7 us on an
  // H200 (docs/gpu/2026-11-26.md).
  std::size_t RoomBytes(Device* device) noexcept;
  // Last result of RoomBytes(); SIZE_MAX before the first call.
  std::size_t last_room_bytes() const noexcept {
    return last_room_bytes_.load(std::memory_order_relaxed);
  }

  std::size_t limit_bytes() const { return limit_bytes_; }
  const char* limit_flag() const { return limit_flag_; }
  std::size_t claimed_bytes() const noexcept { return claimed_bytes_; }
  // Bytes in ranges, without memory of the driver's pool and unreturned memory.
  std::size_t held_bytes() const noexcept { return held_bytes_; }
  // Bytes that the system refused to take back.
  std::size_t unreturned_bytes() const { return layer_.unreturned_bytes(); }
  // All bytes held from the system. Driver calls only if the driver pools
  // memory for a strategy.
  std::size_t reserved_bytes() const noexcept;
  // Number of ranges acquired or released so far.
  std::uint64_t changes() const noexcept { return allocations_ + frees_; }
  // Reserved bytes, peak, limit and numbers of ranges.
  Stats stats() const;
  void ResetPeak();

  // Completes the failure of a request for `bytes`.
  void Explain(Failure& failure, std::size_t bytes) const noexcept;

 private:
  bool Refuse(Failure::Reason reason, std::size_t bytes, std::size_t claimed,
              Failure& failure) const noexcept;
  // Free bytes of `device`; SIZE_MAX if the device call fails. Queries the
  // device at the first call, after ForgetFree(), and when the reserved bytes
  // have changed by kFreeStepBytes since the last query. In between, adds that
  // change to the last answer. Memory that other processes allocate shows at
  // the next query.
  std::size_t EstimateFree(Device& device) noexcept;
  void ForgetFree() noexcept;

  static constexpr std::size_t kFreeStepBytes = std::size_t{1} << 30;

  const Allocator& layer_;
  MemoryBudget* const below_;
  const std::size_t limit_bytes_;
  const char* const limit_flag_;
  const std::shared_ptr<Reclaimer> reclaimer_;  // null: no request waits
  // Bytes held, or requested from the system now; bounded by the limit.
  std::atomic<std::size_t> claimed_bytes_{0};
  std::atomic<std::size_t> range_bytes_{0};  // the part in ranges
  std::atomic<std::size_t> held_bytes_{0};
  std::atomic<std::size_t> peak_held_bytes_{0};
  std::atomic<std::size_t> address_bytes_{0};  // of ClaimAddresses()
  std::atomic<std::uint64_t> allocations_{0};  // ranges acquired
  std::atomic<std::uint64_t> frees_{0};        // ranges released
  std::atomic<std::uint64_t> failures_{0};

  // The last answer of the device; guarded by free_lock_.
  SpinLock free_lock_;
  bool is_free_known_ = false;
  std::size_t free_bytes_ = 0;
  std::size_t reserved_when_asked_ = 0;  // bytes
  std::atomic<std::size_t> last_room_bytes_{SIZE_MAX};
  mutable std::mutex driver_mutex_;
  std::weak_ptr<DriverHeld> driver_held_;  // guarded by driver_mutex_
};

// Memory that the driver pools for the strategies of a place, as seen by the
// ChunkPool of that place. It is reserved, but belongs to no chunk.
//
// Units: bytes, as the driver counts them.
// Threads: any thread, with no lock held.
// Cost: at least one driver call per function.
class MemoryBudget::DriverHeld {
 public:
  DriverHeld() = default;
  DriverHeld(const DriverHeld&) = delete;
  DriverHeld& operator=(const DriverHeld&) = delete;
  virtual ~DriverHeld() = default;

  // Bytes held from the system now. PeakReservedBytes() is the maximum since
  // the last ResetPeak(). If the driver call fails, returns the last known
  // value.
  virtual std::size_t ReservedBytes() noexcept = 0;
  // True if the memory belongs to this place alone, so that the limit of the
  // place bounds it. No driver call.
  virtual bool is_own() const noexcept = 0;
  virtual std::size_t PeakReservedBytes() noexcept = 0;
  virtual void ResetPeak() noexcept = 0;
  // Upper bound of the bytes that GiveBack() could release after all work
  // completes.
  virtual std::size_t IdleBytes() noexcept = 0;

  // Makes memory that other streams freed available to `stream`, by a wait on
  // the device. Returns the bytes made available.
  virtual std::size_t MoveWithinReach(Stream stream) noexcept = 0;
  // Releases idle memory to the system without a wait for any stream of a
  // chain. Returns the bytes released.
  virtual std::size_t GiveBack() noexcept = 0;
};

}  // namespace strata

#endif  // STRATA_ALLOCATION_CHUNKS_MEMORY_BUDGET_H_
