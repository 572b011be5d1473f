#ifndef STRATA_FACADE_FRONT_H_
#define STRATA_FACADE_FRONT_H_

#include <glog/logging.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <unordered_set>

#include "strata/allocation/decorator.h"
#include "strata/allocation/decorators/stat_allocator.h"
#include "strata/allocation/hit/chain_lock.h"
#include "strata/allocation/hit/hit_state.h"
#include "strata/allocation/hit/remote_frees.h"
#include "strata/allocation/hit/usage.h"
#include "strata/allocation/streams/capture_gate.h"
#include "strata/allocation/streams/chain_stream.h"
#include "strata/facade/place_state.h"

namespace strata {

// The outermost layer of a chain. It serves a hit without a call of the layers,
// and any other call through them. It owns the chain until its last allocation
// is freed.
//
// Model: a request of natural alignment without flags or a freed_before uses
//   the chain's hit path, if there is one. A free without mark or offset uses
//   it too. When the facade drops the front, the front becomes an orphan: the
//   last free, in any thread, destroys it.
//   While captures are announced, every call walks the layers. Requests of a
//   stream that takes part in a capture are served by its pool.
//   Alloc and FreePlain contain only the code of a hit of the front cache.
//   Their only function call is a tail call, so they save no register. All
//   other cases restart in AllocSlowly and FreeSlowly. One word of the gate
//   decides: it counts announced captures and requests that wait for memory.
//   The retry queue knows a thread from the route that it took, and from its
//   first free past the front cache.
//   A free that finds the lock held or owned by another thread leaves its block
//   in the remote frees (remote_frees.h), and does not wait. If 64 blocks wait
//   there, it locks. A hit does not read the remote frees. A request that
//   misses the front cache drains them, and so do one that would raise the peak
//   and every call that counts or lists. They are closed while requests of the
//   place wait for memory, and once the front is an orphan.
// Threads: any thread.
// Cost: a hit acquires one uncontended lock and makes no heap or device call.
class Front final  // NOLINT(cppcoreguidelines-virtual-class-destructor)
    : public Decorator,
      private Postponable,
      private FreeTaker {
 public:
  enum class Role : std::uint8_t {
    kEager,  // of a stream; requests of captures use their pools
    kGraph,  // of a graph pool
  };
  Front(std::shared_ptr<PlaceState> state, std::shared_ptr<ChainStream> stream,
        std::shared_ptr<Allocator> chain, Role role = Role::kEager);

  const std::shared_ptr<ChainStream>& chain_stream() const { return stream_; }
  HitState& hit_state() const { return hit_; }
  // The state of the front's place, in its facade.
  const PlaceState& state() const { return *state_; }

  // The facade releases the front: it becomes an orphan, and may be destroyed
  // on return.
  void Drop() noexcept;
  // Holds the front until Unpin, which may destroy it. False if the front is
  // ending.
  bool TryPin() noexcept;
  void Unpin() noexcept;

  // Whether the front ever received a request.
  bool was_used() const { return was_used_.load(std::memory_order_relaxed); }

  // Drains the remote frees, and closes them until the next contended free. To
  // be called after a request that waits for memory was counted.
  void EndWaiting() noexcept;
  void set_debug_fill(const DebugFill* fill) override;

  // Allocate(bytes), where a hit passes only the hit path. The result is for an
  // AllocationPtr. The calling thread has called AllocFirst. `hit` is
  // hit_state(), passed so that a hit need not read the front.
  [[gnu::always_inline]] Allocation* Alloc(HitState& hit, std::size_t bytes);
  // Alloc for the first call of a thread.
  Allocation* AllocFirst(std::size_t bytes);

  Allocation* TryAllocate(const Request& request,
                          Failure& failure) noexcept override;
  void DoFree(Allocation* allocation) noexcept override;
  // From here on the front is notified of the end of `stream`.
  bool RecordStream(Allocation* allocation, Stream stream) noexcept override;
  bool RecordUse(Allocation* allocation, Stream stream,
                 Event event) noexcept override;
  // Releases nothing while a capture is announced.
  std::size_t Release() noexcept override {
    return gate_.any() ? 0 : underlying()->Release();
  }
  Stream stream() const override { return stream_->stream(); }
  ChainLock& lock() const { return hit_.lock; }
  const char* name() const override { return "front"; }
  // These functions call layers that may call the driver, also after a failed
  // request. They let a capture of the thread continue.
  Stats stats() const override;
  void ResetPeak() override;
  void Accept(AllocatorVisitor& visitor) const override;

 private:
  friend class PlaceState;

  ~Front() override = default;

  void FreePlain(Allocation* allocation) noexcept override;

  Allocation* TakeHit(std::size_t bytes) noexcept;
  // Take a block from the front cache, or add one to it. Null or false if the
  // cache cannot. Hold the lock.
  Block* TakeAtOnce(HitState& hit, std::size_t bytes) noexcept;
  static bool GiveAtOnce(HitState& hit, Block* block) noexcept;
  // Counts a block of the hit path as in use. Hold the lock. The caller checks
  // the peak (UseCounts::is_beyond_peak).
  void Start(HitState& hit, Block* block, std::size_t bytes) noexcept;
  // The rest of Alloc: if the lock is not available at once; with the lock
  // held; after a miss of the front cache; at a new peak; through the layers.
  // The middle three release the lock.
  Allocation* AllocContended(std::size_t bytes);
  Allocation* AllocLocked(HitState& hit, std::size_t bytes);
  Allocation* AllocPastCache(HitState& hit, std::size_t bytes);
  static Allocation* AllocBeyondPeak(HitState& hit, Block* block) noexcept;
  Allocation* AllocSlowly(std::size_t bytes);
  // The rest of FreePlain: if the lock is not available at once; with the lock
  // held; if the front cache does not accept the block. The last two release
  // the lock. `hit` is hit_.
  void FreeContended(Allocation* allocation) noexcept;
  void FreeLocked(HitState& hit, Allocation* allocation) noexcept;
  void FreePastCache(HitState& hit, Allocation* allocation) noexcept;
  // Lets threads leave blocks, if every call may hit. Hold the lock.
  void OpenToFrees() noexcept;
  void FreeSlowly(Allocation* allocation) noexcept;
  // Call with hit_.lock held, after a block of `bytes` was freed. Counts the
  // free, notifies waiting requests, and releases the lock.
  void EndFree(std::size_t bytes) noexcept;
  Allocation* Walk(const Request& request, Failure& failure) noexcept;
  // Whether the layers serve the flags of the request. If not, sets `failure`.
  bool CanServe(const Request& request, Failure& failure) const noexcept;
  void WalkFree(Allocation* allocation) noexcept;
  // TryAllocate while captures are announced.
  Allocation* TryAllocateGated(const Request& request,
                               Failure& failure) noexcept;
  // Whether a call may skip the layers: no layer or capture needs to see it.
  bool MayHit() const noexcept { return hit_path_ != nullptr && !gate_.any(); }
  // Whether, in addition, the call needs nothing except the steps of Alloc and
  // FreePlain. Hold the lock: a request that waits for memory was counted
  // before it last held this lock.
  static bool MayHitPlainly(const HitState& hit) noexcept {
    return hit.attention->load(std::memory_order_relaxed) == 0;
  }
  // Whether the front counts walks itself, instead of the Stat layer. Where
  // there is a hit path, no layer holds back blocks that the front would have
  // to count.
  bool counts_itself() const {
    return stat_ == nullptr || hit_path_ == nullptr;
  }
  // Whether the front has ended. Hold the lock.
  bool is_over() const {
    return orphan_ && pins_ == 0 && hit_.counts.live_allocations() == 0;
  }
  // Destroys the front now, or once no capture is announced.
  void Destroy() noexcept;
  void End() noexcept override;
  // FreeTaker. Does not notify waiting requests: they have called EndWaiting
  // since.
  void TakeIn(std::span<Block* const> blocks) noexcept override;

  const std::shared_ptr<PlaceState> state_;
  const std::shared_ptr<ChainStream> stream_;
  CaptureGate& gate_;        // gate of the facade
  RetryQueue& retry_;        // queue of the place, notified of hits
  HitPath* const hit_path_;  // null: every call walks
  // Stat layer of the chain; null without that layer
  StatAllocator* const stat_;
  const std::size_t hit_alignment_;
  const Role role_;
  const bool takes_remote_frees_;  // if every call may hit
  std::unique_ptr<HitState> own_;  // set if hit_ has no other owner

  // Members that a hit reads, in one cache line.
  alignas(64) HitState& hit_;  // state of the hit path, of stat_, or own_
  std::uint64_t pins_ = 0;
  bool orphan_ = false;
  std::atomic<bool> was_used_{false};
  RemoteFrees remote_frees_;
  // Positions in the lists of state_:
  std::size_t list_position_ = 0;  // guarded by its list_mutex_
  // larger than the number of any earlier front; constant
  std::uint64_t number_ = 0;
  // Uids of streams that notify this front of their end; guarded by the
  // heeds_mutex_ of state_.
  std::unordered_set<std::uint64_t> heeds_;
  // One of heeds_, or 0. Readable without the lock.
  std::atomic<std::uint64_t> heeded_{0};
};

// ---- Inline, so that the facade's functions end in these.

inline Allocation* Front::Alloc(HitState& hit, std::size_t bytes) {
  if (!hit.lock.try_lock()) [[unlikely]] {
    return AllocContended(bytes);
  }
  return AllocLocked(hit, bytes);
}

[[gnu::always_inline]] inline Allocation* Front::AllocLocked(
    HitState& hit, std::size_t bytes) {
  if (!MayHitPlainly(hit)) [[unlikely]] {
    hit.lock.unlock();
    return AllocSlowly(bytes);
  }
  Block* const block = TakeAtOnce(hit, bytes);
  if (block == nullptr) return AllocPastCache(hit, bytes);
  if (hit.counts.is_beyond_peak()) [[unlikely]] {
    return AllocBeyondPeak(hit, block);
  }
  hit.lock.unlock();
  return block->allocation();
}

inline Block* Front::TakeAtOnce(HitState& hit, std::size_t bytes) noexcept {
  Block* const block = hit.cache.Take(bytes);
  if (block != nullptr) Start(hit, block, bytes);
  return block;
}

inline void Front::Start(HitState& hit, Block* block,
                         std::size_t bytes) noexcept {
  block->requested = bytes;
  block->owner = this;
  hit.counts.CountBelowPeak(*block);
}

}  // namespace strata

#endif  // STRATA_FACADE_FRONT_H_
