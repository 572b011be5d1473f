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
#include "strata/allocation/device_room.h"
#include "strata/allocation/driver_held.h"
#include "strata/allocation/reclaimer.h"
#include "strata/platform/function_ref.h"

namespace strata {

// The bytes of one place: the limit, and how many are claimed, reserved and at
// most reserved.
//
// Model: memory is counted as ranges of bytes; a range is a chunk or mapped
//   pages. A range is claimed before the system is asked, so concurrent growth
//   cannot exceed the limit; then it is held, until it is returned. Claimed
//   bytes include held ones. What a strategy allocates from the driver's pool
//   is claimed alone: the pool itself (DriverHeld) is counted as reserved.
//   Memory that the system refuses to take back stays reserved. A budget may
//   stand on another one, which counts the same ranges too.
// Threads: any thread. No lock is held during a call of the driver. Device
//   calls: DeviceRoom::Estimate, and DriverHeld where a strategy shares one.
// Source: paddle.md §2 gpu_memory_limit_mb.
class MemoryBudget {
 public:
  // `layer` claims: it names failures, and says what the system refuses to take
  // back. `below`: the budget that this one stands on; null: none.
  // `limit_bytes` 0: no limit. `limit_flag` sets it; "" if not known.
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

  // Claims bytes that a strategy allocates from the driver's pool. False, with
  // the reason in `failure`, if the limit forbids it.
  bool Claim(std::size_t bytes, Failure& failure) noexcept;
  void Unclaim(std::size_t bytes) noexcept;

  // Claims a range. False, with the reason in `failure`, if the limit forbids
  // it beside the memory that the driver pools.
  bool ClaimRange(std::size_t bytes, Failure& failure) noexcept;
  // `was_refused`: the system had no memory.
  void UnclaimRange(std::size_t bytes, bool was_refused) noexcept;
  // Of claimed bytes, the system gave `bytes`, in `pieces`.
  void Hold(std::size_t claimed, std::size_t bytes,
            std::size_t pieces) noexcept;
  // `give` returns a held range to the system. False if the system refuses it:
  // then it stays counted. Wakes requests that wait for memory.
  bool Return(std::size_t bytes, FunctionRef<bool()> give) noexcept;

  // Lets requests that wait for memory search again: a chunk, or a part of one,
  // is idle. Its bytes were counted when its last block was freed.
  void NotifyIdle() const noexcept {
    if (reclaimer_ != nullptr) reclaimer_->retry().NotifyFree(0);
  }

  // As ClaimRange, UnclaimRange, Hold and Return, for mapped pages. They also
  // count in the budgets below.
  bool ClaimPages(std::size_t bytes, Failure& failure) noexcept;
  void UnclaimPages(std::size_t bytes, bool was_refused) noexcept;
  // Whether the device has `bytes` free that the limits allow, by a new answer
  // of the device. If not, counts a failure.
  bool HasRoomNow(Device& device, std::size_t bytes) noexcept;
  void HoldPages(std::size_t bytes, std::size_t pieces) noexcept;
  bool ReturnPages(std::size_t bytes, FunctionRef<bool()> give) noexcept;
  // Address space that is reserved, at most `most` bytes together, in the
  // lowest budget. False, and nothing is claimed, beyond that.
  bool ClaimAddresses(std::size_t bytes, std::size_t most) noexcept;
  void UnclaimAddresses(std::size_t bytes) noexcept;

  // The DriverHeld that the strategies of this place share: the one that any of
  // them holds, or the result of `make` if there is none. Its memory is counted
  // here as long as a strategy holds it.
  std::shared_ptr<DriverHeld> ShareDriverHeld(
      const std::function<std::shared_ptr<DriverHeld>()>& make);
  // Null if no strategy holds any.
  std::shared_ptr<DriverHeld> driver_held() const;
  // Whether ranges and memory that the driver pools are within the limit
  // together. If not, idle memory of the driver's goes back first. No driver
  // call while there are no ranges, or no limit. Of two threads that grow the
  // one and the other, one sees the growth of the other.
  bool FitsBesideRanges() noexcept;

  // An estimate of the bytes by which the place can grow: the smaller of the
  // bytes that the limit leaves and the bytes that `device`, if it is not null,
  // has free. SIZE_MAX if nothing bounds it.
  std::size_t RoomBytes(Device* device) noexcept;
  // The last result of RoomBytes; SIZE_MAX before the first.
  std::size_t last_room_bytes() const noexcept {
    return last_room_bytes_.load(std::memory_order_relaxed);
  }

  std::size_t limit_bytes() const { return limit_bytes_; }
  const char* limit_flag() const { return limit_flag_; }
  std::size_t claimed_bytes() const noexcept { return claimed_bytes_; }
  // In ranges; without memory of the driver's pool and unreturned memory.
  std::size_t held_bytes() const noexcept { return held_bytes_; }
  // Memory that the system refused to take back.
  std::size_t unreturned_bytes() const { return layer_.unreturned_bytes(); }
  // All that is held from the system. Driver calls only if the driver pools
  // memory for a strategy.
  std::size_t reserved_bytes() const noexcept;
  // Ranges that came or went so far.
  std::uint64_t changes() const noexcept { return allocations_ + frees_; }
  // Reserved bytes, peak, limit and counts of ranges.
  Stats stats() const;
  void ResetPeak();

  // Completes a failure to obtain `bytes`.
  void Explain(Failure& failure, std::size_t bytes) const noexcept;

 private:
  bool Refuse(Failure::Reason reason, std::size_t bytes, std::size_t claimed,
              Failure& failure) const noexcept;

  const Allocator& layer_;
  MemoryBudget* const below_;
  const std::size_t limit_bytes_;
  const char* const limit_flag_;
  const std::shared_ptr<Reclaimer> reclaimer_;  // null: nobody waits
  // Bytes held, and asked of the system just now: the limit bounds them.
  std::atomic<std::size_t> claimed_bytes_{0};
  std::atomic<std::size_t> range_bytes_{0};  // of them, in ranges
  std::atomic<std::size_t> held_bytes_{0};
  std::atomic<std::size_t> peak_held_bytes_{0};
  std::atomic<std::size_t> address_bytes_{0};  // of ClaimAddresses
  std::atomic<std::uint64_t> allocations_{0};  // ranges that came
  std::atomic<std::uint64_t> frees_{0};        // ranges that went
  std::atomic<std::uint64_t> failures_{0};

  DeviceRoom device_room_;
  std::atomic<std::size_t> last_room_bytes_{SIZE_MAX};
  mutable std::mutex driver_mutex_;
  std::weak_ptr<DriverHeld> driver_held_;  // guarded by driver_mutex_
};

}  // namespace strata

#endif  // STRATA_ALLOCATION_CHUNKS_MEMORY_BUDGET_H_
