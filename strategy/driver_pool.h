#ifndef STRATA_STRATEGY_DRIVER_POOL_H_
#define STRATA_STRATEGY_DRIVER_POOL_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "strata/allocation/driver_held.h"
#include "strata/allocation/failure.h"
#include "strata/allocation/streams/capture_gate.h"
#include "strata/allocation/streams/side_streams.h"
#include "strata/platform/device.h"
#include "strata/platform/function_ref.h"
#include "strata/platform/spin_lock.h"
#include "strata/strategy/strategy_options.h"

namespace strata {

// One stream-ordered pool of a driver, and the free streams: streams beside all
// others on which memory is freed that several streams have used.
//
// Model: the pool, the free streams and the device's total are asked for when
//   they are first needed. The pool is an own one, so that its attributes and
//   its limit affect no other user of the device; or it is the device's default
//   one. Memory that is freed aside is free once its free stream has run past
//   every stream that used it. Each set of streams has a free stream
//   (SideStreams), so a slow stream delays only memory that it used, unless
//   more than SideStreams::kMost sets are busy. A free stream behind a stream
//   stands for it once that stream is gone. Memory freed aside counts as
//   pending until its free stream is known to be done; and for a stream, until
//   that has waited for it.
// Units: bytes.
// Threads: any thread. No lock is held during a device call.
// Lifetime: `device` outlives it. Memory that is still in use then stays valid,
//   and is the driver's to take back when it is freed.
// Source: paddle.md §3.7 rules 2 to 4; cuda_semantics.md P1 to P10.
class DriverPool final : public DriverHeld {
 public:
  // Makes no device call. `limit_bytes` bounds what an own pool reserves; 0: no
  // limit. `limit_flag` is the name for failures: Failure::limit_flag.
  DriverPool(Device& device, const StrategyOptions& options,
             std::size_t limit_bytes, const char* limit_flag = "");
  ~DriverPool() override;

  // While captures are announced there, the device is not waited for.
  void Heed(std::shared_ptr<const CaptureGate> gate);

  bool is_open() const { return pool_.load() != nullptr; }
  // Whether addresses are to depend on the program alone, not on when its
  // streams are done.
  bool is_deterministic() const { return is_deterministic_; }

  // `bytes` for the work of `stream` from now on; 0, with reason, status and
  // numbers in `failure`, if the driver refuses. For the legacy stream, while a
  // capture is announced, on a free stream, and waits for that on the host.
  // Asks `fits` once the driver may have grown; if not, the memory goes back,
  // and the limit is the reason.
  DevicePtr Allocate(std::size_t bytes, Stream stream, FunctionRef<bool()> fits,
                     Failure& failure) noexcept;
  // For work of `stream` that comes after all that it has been given. False if
  // the driver refuses, which is logged unless captures are announced: then the
  // memory is still in use.
  bool Free(DevicePtr ptr, std::size_t bytes, Stream stream) noexcept;
  // Frees once `users` and `owner` (null: it is done) are done with what they
  // have been given: without a wait on the host, unless the device refuses to
  // order the streams. False as Free.
  bool FreeAside(DevicePtr ptr, std::size_t bytes,
                 const std::vector<Stream>& users,
                 const Stream* owner) noexcept;
  // Frees after a wait for the whole device. False as Free.
  bool FreeAfterAll(DevicePtr ptr, std::size_t bytes) noexcept;

  // A stream of the pool that stands for `stream`, which is about to go: it is
  // behind the work that `stream` has now. Without uid if the host waited for
  // that instead. None if nothing could be made to wait for it.
  std::optional<Stream> StandIn(Stream stream) noexcept;
  // Bytes freed aside whose free streams are not known to be done. Asks them,
  // but not beside an announced capture, nor if addresses are to depend on the
  // program alone.
  std::uint64_t AskPending() noexcept;
  // Makes `stream` wait for free streams, for those with most pending bytes
  // first, until `is_enough` of the bytes for which it does not wait. Returns
  // those; more than enough if the device refuses.
  std::uint64_t MakeWait(Stream stream,
                         FunctionRef<bool(std::uint64_t)> is_enough) noexcept;
  // Waits, on the host, for all that was freed aside.
  void Synchronize() noexcept;

  // Freed aside so far, in all.
  std::uint64_t aside_bytes() const { return aside_bytes_.load(); }
  // In blocks that are not freed.
  std::size_t in_use_bytes() const { return in_use_bytes_.load(); }
  // Whether what is in use and `pending_bytes` together exceed the ratio of the
  // device, or of the limit if that is lower, from which on a stream waits.
  bool IsCrowded(std::uint64_t pending_bytes) noexcept;
  // Whether so much is no more than the device, or the limit, has; true if the
  // device does not say. At most one device call in all.
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
  // The most that an own pool may reserve; 0: no limit.
  std::size_t most_bytes() const;
  // Of the device, or the limit if that is less; 0: asked again next time.
  std::size_t TotalBytes() noexcept;
  // Makes the pool if there is none yet, for the work of `stream`.
  Status Open(Stream stream) noexcept;
  Status Create(MemPool* pool) noexcept;
  void Destroy(MemPool pool) noexcept;
  Status Configure(MemPool pool) noexcept;
  Status LetPeersIn(MemPool pool) noexcept;
  void Preallocate(MemPool pool, Stream stream) noexcept;
  void Explain(Status status, std::size_t bytes, Failure& failure) noexcept;
  std::size_t ReadAttribute(PoolAttribute attribute,
                            std::atomic<std::size_t>& last) noexcept;

  // A stream without uid if none can be made.
  Stream FreeStreamOf(const std::vector<Stream>& users,
                      const Stream* owner) noexcept;
  using FreeStreams = std::array<Stream, SideStreams::kMost>;

  void CountAside(const Stream& aside, std::size_t bytes) noexcept;
  // Bytes of one free stream that are not known to be done.
  std::uint64_t PendingOn(std::size_t index) const noexcept;
  // Calls `is_done` with each free stream that has pending bytes. Returns the
  // bytes that are pending then.
  template <class Predicate>
  std::uint64_t FindDone(Predicate is_done) noexcept;

  // Makes `waiter` wait, on the device, for what `stream` has now.
  bool Wait(Stream waiter, Stream stream) noexcept;
  // Whether work in `stream` becomes part of a capture.
  bool IsCapturing(Stream stream) noexcept;
  bool WaitOnHost(Stream stream) noexcept;
  // Null: none.
  const CaptureGate* Gate() const noexcept { return gate_.load(); }
  bool DuringCapture() const noexcept;
  // Makes `waiter`, or the host if there is none, wait for `stream`.
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

  std::atomic<void*> pool_{nullptr};  // null until it is needed
  std::atomic<std::size_t> in_use_bytes_{0};
  std::atomic<std::uint64_t> aside_bytes_{0};
  // By free stream, in their order: freed there, and known to be done.
  std::array<std::atomic<std::uint64_t>, SideStreams::kMost> freed_bytes_{};
  std::array<std::atomic<std::uint64_t>, SideStreams::kMost> done_bytes_{};
  std::atomic<std::size_t> total_bytes_{0};  // 0 until it is needed
  std::atomic<std::size_t> last_reserved_{0};
  std::atomic<std::size_t> last_peak_{0};

  std::atomic<const CaptureGate*> gate_{nullptr};  // set once

  SpinLock lock_;
  std::shared_ptr<const CaptureGate> gate_owner_;  // guarded by lock_
  SideStreams free_streams_;
};

}  // namespace strata

#endif  // STRATA_STRATEGY_DRIVER_POOL_H_
