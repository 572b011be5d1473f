#ifndef STRATA_STRATEGY_CUDA_MALLOC_ASYNC_DRIVER_POOL_H_
#define STRATA_STRATEGY_CUDA_MALLOC_ASYNC_DRIVER_POOL_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "strata/allocation/chunks/memory_budget.h"
#include "strata/allocation/failure.h"
#include "strata/allocation/streams/capture_gate.h"
#include "strata/allocation/streams/side_streams.h"
#include "strata/allocation/streams/stream_sets.h"
#include "strata/allocation/streams/stream_timeline.h"
#include "strata/base/function_ref.h"
#include "strata/platform/device.h"
#include "strata/strategy/cuda_malloc_async/options.h"

namespace strata {

// One stream-ordered pool of a driver, and the free streams. A free stream is
// an extra stream on which the pool frees memory that several streams have
// used.
//
// Model: the pool, the free streams and the device's total are created or read
//   on first use. By default, the pool is one of its own, so that its
//   attributes and its limit affect no other user of the device. The
//   alternative is the device's default pool.
//   Memory freed aside is freed on a free stream, once that has run past every
//   stream that used the memory. Each set of streams has a free stream
//   (SideStreams). So a slow stream delays only memory that it used, unless
//   more than SideStreams::kMost sets are busy. A free stream that is ordered
//   after a stream stands for that stream after its end.
//   Memory freed aside is pending until its free stream is known to be done.
//   For one stream, it is pending until that stream has waited for the free
//   stream.
// Units: bytes.
// Threads: any thread. No lock is held during a device call.
// Lifetime: `device` outlives the pool. Memory still in use at the end stays
//   valid; the driver reclaims it when it is freed.
// Source: paddle.md §3.7 rules 2 to 4; cuda_semantics.md P1 to P10.
class DriverPool final : public MemoryBudget::DriverHeld {
 public:
  // Makes no device call. The device is not waited for while captures are
  // announced at the gate of `timeline` (null: no gate). `limit_bytes` bounds
  // the reserved bytes of an own pool; 0: no limit. `limit_flag` is the flag
  // that failures name: Failure::limit_flag.
  DriverPool(Device& device, const CudaMallocAsyncOptions& options,
             const StreamTimeline* timeline, std::size_t limit_bytes,
             const char* limit_flag = "");
  ~DriverPool() override;

  bool is_open() const { return pool_.load() != nullptr; }
  // Whether addresses must depend on the program alone, and not on the time at
  // which its streams finish.
  bool is_deterministic() const { return is_deterministic_; }

  // Allocates `bytes` for later work of `stream`. Returns 0, with reason,
  // status and numbers in `failure`, if the driver refuses. For the legacy
  // stream during an announced capture, allocates on a free stream and waits
  // for that on the host. Calls `fits` once the driver may have grown. If it
  // returns false, the memory is freed and the limit is the reason.
  DevicePtr Allocate(std::size_t bytes, Stream stream, FunctionRef<bool()> fits,
                     Failure& failure) noexcept;
  // Frees for work of `stream` after all work submitted to it so far. False if
  // the driver refuses; then the memory is still in use. The refusal is logged,
  // unless captures are announced.
  bool Free(DevicePtr ptr, std::size_t bytes, Stream stream) noexcept;
  // Frees after the work submitted so far to `users` and to `owner` (null: done
  // already). Does not wait on the host, unless the device refuses to order the
  // streams. False as Free.
  bool FreeAside(DevicePtr ptr, std::size_t bytes,
                 const std::vector<Stream>& users,
                 const Stream* owner) noexcept;
  // Frees after a wait for the whole device. False as Free.
  bool FreeAfterAll(DevicePtr ptr, std::size_t bytes) noexcept;

  // A free stream that stands for `stream`, which is about to end. It is
  // ordered after the present work of `stream`. Without uid if the host waited
  // for `stream` instead. nullopt if neither was possible.
  std::optional<Stream> StandIn(Stream stream) noexcept;
  // Bytes freed aside on free streams that are not known to be done. Queries
  // the free streams, except during an announced capture or if addresses must
  // be deterministic.
  std::uint64_t AskPending() noexcept;
  // Makes `stream` wait for free streams, those with most pending bytes first.
  // Stops when `is_enough` accepts the pending bytes for which `stream` does
  // not wait. Returns these bytes; if the device refuses, they may be more than
  // is enough.
  std::uint64_t MakeWait(Stream stream,
                         FunctionRef<bool(std::uint64_t)> is_enough) noexcept;
  // Waits, on the host, for all frees aside.
  void Synchronize() noexcept;

  // Total bytes freed aside since construction.
  std::uint64_t aside_bytes() const { return aside_bytes_.load(); }
  // Bytes of blocks that are not freed.
  std::size_t in_use_bytes() const { return in_use_bytes_.load(); }
  // Whether bytes in use and `pending_bytes` together exceed the throttle
  // ratio, of the device or of a lower limit. From then on a stream waits.
  bool IsCrowded(std::uint64_t pending_bytes) noexcept;
  // Whether `bytes` is at most the total of the device, or the limit. True if
  // the device does not report its total. At most one device call over the
  // lifetime.
  bool CanHold(std::size_t bytes) noexcept;

  // DriverHeld.
  std::size_t ReservedBytes() noexcept override;
  bool is_own() const noexcept override { return !use_default_pool_; }
  std::size_t PeakReservedBytes() noexcept override;
  void ResetPeak() noexcept override;
  std::size_t IdleBytes() noexcept override;
  std::size_t MoveWithinReach(Stream stream) noexcept override;
  std::size_t GiveBack() noexcept override;

 private:
  MemPool pool() const { return MemPool{pool_.load()}; }
  // The most bytes that an own pool may reserve; 0: no limit.
  std::size_t most_bytes() const;
  // Total of the device, or the limit if that is less. 0: unknown; the next
  // call asks again.
  std::size_t TotalBytes() noexcept;
  // Creates the pool on first use, for the work of `stream`.
  Status Open(Stream stream) noexcept;
  Status Create(MemPool* pool) noexcept;
  void Destroy(MemPool pool) noexcept;
  Status Configure(MemPool pool) noexcept;
  Status LetPeersIn(MemPool pool) noexcept;
  void Preallocate(MemPool pool, Stream stream) noexcept;
  void Explain(Status status, std::size_t bytes, Failure& failure) noexcept;
  std::size_t ReadAttribute(PoolAttribute attribute,
                            std::atomic<std::size_t>& last) noexcept;

  // Returns a stream without uid if none can be created.
  Stream FreeStreamOf(const std::vector<Stream>& users,
                      const Stream* owner) noexcept;
  using FreeStreams = std::array<Stream, SideStreams::kMost>;

  void CountAside(const Stream& aside, std::size_t bytes) noexcept;
  // Bytes freed on one free stream that are not known to be done.
  std::uint64_t PendingOn(std::size_t index) const noexcept;
  // Calls `is_done` for each free stream with pending bytes. Returns the bytes
  // still pending afterwards.
  template <class Predicate>
  std::uint64_t FindDone(Predicate is_done) noexcept;

  // Makes `waiter` wait, on the device, for the present work of `stream`.
  bool Wait(Stream waiter, Stream stream) noexcept;
  // Whether work in `stream` becomes part of a capture.
  bool IsCapturing(Stream stream) noexcept;
  // Whether some stream forbids waits. A free stream may wait for it.
  bool ForbidsWaits() const noexcept;
  bool WaitOnHost(Stream stream) noexcept;
  bool DuringCapture() const noexcept;
  // Makes `waiter`, or the host if it has no uid, wait for `stream`.
  bool Order(Stream waiter, Stream stream) noexcept;
  bool Freed(Status status, DevicePtr ptr, std::size_t bytes) noexcept;

  Device& device_;
  const bool use_default_pool_;
  const bool is_deterministic_;
  const bool has_peers_;
  const std::uint64_t release_threshold_;
  const std::uint64_t preallocate_bytes_;
  const double throttle_ratio_;
  const std::size_t limit_bytes_;
  const char* const limit_flag_;
  const std::shared_ptr<const CaptureGate> gate_;              // Null: no gate.
  const std::shared_ptr<const StreamsWithoutWaits> no_waits_;  // Null: none.

  std::atomic<void*> pool_{nullptr};  // Null until first use.
  std::atomic<std::size_t> in_use_bytes_{0};
  std::atomic<std::uint64_t> aside_bytes_{0};
  // Bytes by free stream, in the order of free_streams_: freed there, and known
  // to be done.
  std::array<std::atomic<std::uint64_t>, SideStreams::kMost> freed_bytes_{};
  std::array<std::atomic<std::uint64_t>, SideStreams::kMost> done_bytes_{};
  std::atomic<std::size_t> total_bytes_{0};  // 0 until first use.
  std::atomic<std::size_t> last_reserved_{0};
  std::atomic<std::size_t> last_peak_{0};

  SideStreams free_streams_;
};

}  // namespace strata

#endif  // STRATA_STRATEGY_CUDA_MALLOC_ASYNC_DRIVER_POOL_H_
