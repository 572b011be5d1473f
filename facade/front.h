#ifndef STRATA_FACADE_FRONT_H_
#define STRATA_FACADE_FRONT_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <unordered_set>

#include "strata/allocation/decorator.h"
#include "strata/allocation/decorators/stat_allocator.h"
#include "strata/allocation/hit/chain_lock.h"
#include "strata/allocation/hit/hit_state.h"
#include "strata/allocation/hit/remote_frees.h"
#include "strata/allocation/hit/usage.h"
#include "strata/allocation/reclaim/thread_census.h"
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
//   A free that finds the lock held by another thread opens the front to remote
//   frees (remote_frees.h): from then on, threads that only free leave their
//   blocks there and do not lock. This ends when no thread leaves blocks any
//   more, when requests of the place wait for memory, or when the front becomes
//   an orphan. A hit does not read the remote frees. A request that misses the
//   front cache drains them, and so does one that would raise the peak.
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

  // True if other threads may have queued frees. EndWaiting() drains the queue,
  // and closes it until the next contended free.
  bool may_have_waiting() const { return hit_.lock.is_open(); }
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
  // The rest of Alloc and FreePlain if the lock has an owner thread, or is
  // held.
  Allocation* AllocInTurn(std::size_t bytes);
  void FreeInTurn(Allocation* allocation) noexcept;
  // Take a block from the front cache, or add one to it. Null or false if the
  // cache cannot. Hold the lock.
  Block* TakeAtOnce(HitState& hit, std::size_t bytes) noexcept;
  static bool GiveAtOnce(HitState& hit, Block* block) noexcept;
  // Counts a block of the hit path as in use. Hold the lock. The caller checks
  // the peak (UseCounts::is_beyond_peak).
  void Start(HitState& hit, Block* block, std::size_t bytes) noexcept;
  // The rest of Alloc: with the lock held; after a miss of the front cache; at
  // a new peak; through the layers.
  template <class Hold>
  Allocation* AllocWith(HitState& hit, std::size_t bytes);
  template <class Hold>
  Allocation* AllocPastCache(HitState& hit, std::size_t bytes);
  template <class Hold>
  Allocation* AllocBeyondPeak(HitState& hit, Block* block) noexcept;
  Allocation* AllocSlowly(std::size_t bytes);
  // Drains the queued frees, then takes a block from the front cache; null if
  // there is none. Hold the lock.
  Block* TakeAmongLeft(HitState& hit, std::size_t bytes) noexcept;
  // The rest of Alloc if the lock was not available at once.
  Allocation* AllocContended(std::size_t bytes);
  // The rest of FreePlain: with the lock held; if the front cache does not
  // accept the block. Both release the lock. `hit` is hit_.
  template <class Hold>
  void FreeWith(HitState& hit, Allocation* allocation) noexcept;
  template <class Hold>
  void FreePastCache(HitState& hit, Allocation* allocation) noexcept;
  // The rest of FreePlain: if the thread may be uncounted or remote frees may
  // be open; if the lock was not available at once; if another thread should
  // free the block.
  void FreeUnplainly(Allocation* allocation) noexcept;
  void FreeContended(Allocation* allocation) noexcept;
  void FreeElsewhere(Allocation* allocation) noexcept;
  // Whether the calling thread is at home here, and so frees under the lock. A
  // thread is at home once it missed the front cache here while remote frees
  // were open.
  bool IsHome() const noexcept;
  void SetHome(bool is_home) const noexcept;
  // Opens and closes the remote frees. Hold the lock.
  void OpenToFrees() noexcept;
  void CloseToFrees() noexcept;
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

  // Frees by threads at home, without a remote free between them, after which
  // the remote frees close.
  static constexpr std::uint32_t kQuietFrees = 4096;

  const std::shared_ptr<PlaceState> state_;
  const std::shared_ptr<ChainStream> stream_;
  CaptureGate& gate_;        // gate of the facade
  RetryQueue& retry_;        // queue of the place, notified of hits
  HitPath* const hit_path_;  // null: every call walks
  // Stat layer of the chain; null without that layer
  StatAllocator* const stat_;
  const std::size_t hit_alignment_;
  const Role role_;
  const bool may_wait_;                 // whether frees may wait at the lock
  std::optional<LastingHitState> own_;  // set if hit_ has no other owner

  // Members that a hit reads, in one cache line.
  alignas(64) HitState& hit_;        // state of the hit path, of stat_, or own_
  const std::uint64_t retry_place_;  // place of retry_
  // retry_place_, or kNowhere while remote frees are open: then no free is
  // plain.
  std::atomic<std::uint64_t> plain_place_;
  std::uint64_t pins_ = 0;
  // frees by threads at home since the last remote free
  std::uint32_t quiet_frees_ = 0;
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
  if (!ChainLock::ByWord::TakeAtOnce(hit.lock)) [[unlikely]] {
    return AllocInTurn(bytes);
  }
  return AllocWith<ChainLock::ByWord>(hit, bytes);
}

template <class Hold>
[[gnu::always_inline]] inline Allocation* Front::AllocWith(HitState& hit,
                                                           std::size_t bytes) {
  if (!MayHitPlainly(hit)) [[unlikely]] {
    Hold::Release(hit.lock);
    return AllocSlowly(bytes);
  }
  Block* const block = TakeAtOnce(hit, bytes);
  if (block == nullptr) return AllocPastCache<Hold>(hit, bytes);
  if (hit.counts.is_beyond_peak()) [[unlikely]] {
    return AllocBeyondPeak<Hold>(hit, block);
  }
  Hold::Release(hit.lock);
  return block->allocation();
}

template <class Hold>
[[gnu::noinline]] Allocation* Front::AllocBeyondPeak(HitState& hit,
                                                     Block* block) noexcept {
  Hold::Keep();
  hit.lock.TakeIn();
  Hold::Unkeep();
  hit.counts.RaisePeak();
  Hold::Release(hit.lock);
  return block->allocation();
}

template <class Hold>
[[gnu::noinline]] Allocation* Front::AllocPastCache(HitState& hit,
                                                    std::size_t bytes) {
  Hold::Keep();
  Block* block = hit.lock.is_open() ? TakeAmongLeft(hit, bytes) : nullptr;
  if (block == nullptr && bytes != 0) block = hit_path_->TakeCached(bytes);
  Hold::Unkeep();
  if (block == nullptr) [[unlikely]] {
    Hold::Release(hit.lock);
    return AllocSlowly(bytes);
  }
  Start(hit, block, bytes);
  hit.counts.RaisePeak();
  Hold::Release(hit.lock);
  return block->allocation();
}

template <class Hold>
inline void Front::FreeWith(HitState& hit, Allocation* allocation) noexcept {
  if (!MayHitPlainly(hit)) [[unlikely]] {
    Hold::Release(hit.lock);
    return FreeSlowly(allocation);
  }
  if (!GiveAtOnce(hit, allocation->block())) {
    return FreePastCache<Hold>(hit, allocation);
  }
  Hold::Release(hit.lock);
}

template <class Hold>
[[gnu::noinline]] void Front::FreePastCache(HitState& hit,
                                            Allocation* allocation) noexcept {
  Block* const block = allocation->block();
  Hold::Keep();
  // Count first: once the cache has the block, another thread may own it.
  hit.counts.Uncount(*block);
  const bool is_given = hit_path_->GiveCached(block);
  if (!is_given) [[unlikely]] {
    hit.counts.Recount(*block);
  }
  Hold::Unkeep();
  Hold::Release(hit.lock);
  if (!is_given) [[unlikely]] {
    WalkFree(allocation);
  }
}

inline bool Front::GiveAtOnce(HitState& hit, Block* block) noexcept {
  // The cache overwrites it.
  const std::size_t requested = block->requested;
  if (!hit.cache.Give(block)) return false;
  hit.counts.Uncount(*block, requested);
  return true;
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
