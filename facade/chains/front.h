#ifndef STRATA_FACADE_CHAINS_FRONT_H_
#define STRATA_FACADE_CHAINS_FRONT_H_

#include <cstddef>
#include <memory>
#include <span>

#include "strata/allocation/hit/chain_state.h"
#include "strata/allocation/hit/remote_frees.h"
#include "strata/facade/chains/chain.h"

namespace strata {

// The outermost layer of a chain. It serves a hit without a call of the layers,
// and any other call through them.
//
// Model: a request of natural alignment without flags or a freed_before uses
//   the chain's hit path, if there is one. A free without mark or offset uses
//   it too.
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
    : public Chain,
      private RemoteFrees {
 public:
  Front(const Services& services, std::shared_ptr<ChainStream> stream,
        std::shared_ptr<Allocator> layers, Role role = Role::kEager);

  // Drains the remote frees, and closes them until the next contended free. To
  // be called after a request that waits for memory was counted.
  void EndWaiting() noexcept;
  void set_debug_fill(const DebugFill* fill) override;

  // Allocate(bytes), where a hit passes only the hit path. The result is for an
  // AllocationPtr. The calling thread has called AllocFirst. `hit` is
  // state(), passed so that a hit need not read the front; `self` is the
  // calling thread.
  [[gnu::always_inline]] Allocation* Alloc(ChainState& hit, std::size_t bytes,
                                           ThreadState& self);
  // Alloc for the first call of a thread.
  Allocation* AllocFirst(std::size_t bytes);

  Allocation* TryAllocate(const Request& request,
                          Failure& failure) noexcept override;
  void DoFree(Allocation* allocation) noexcept override;

 private:
  ~Front() override = default;

  void FreePlain(Allocation* allocation) noexcept override;

  Allocation* TakeHit(std::size_t bytes) noexcept;
  // Take a block from the front cache, or add one to it. Null or false if the
  // cache cannot. Hold the lock.
  Block* TakeAtOnce(ChainState& hit, std::size_t bytes) noexcept;
  static bool GiveAtOnce(ChainState& hit, Block* block) noexcept;
  // Counts a block of the hit path as in use. Hold the lock. The caller checks
  // the limit (UseCounts::is_beyond_limit).
  void Start(ChainState& hit, Block* block, std::size_t bytes) noexcept;
  // The rest of Alloc: if the lock is not available at once; with the lock
  // held; after a miss of the front cache; at a new peak; through the layers.
  // All but the first need the lock, and release it.
  Allocation* AllocContended(std::size_t bytes);
  Allocation* AllocLocked(ChainState& hit, std::size_t bytes,
                          ThreadState& self);
  Allocation* AllocPastCache(ChainState& hit, std::size_t bytes,
                             ThreadState& self);
  static Allocation* AllocBeyondPeak(ChainState& hit, Block* block) noexcept;
  Allocation* AllocSlowly(std::size_t bytes);
  // The rest of FreePlain: if the lock is not available at once; with the lock
  // held; if the front cache does not accept the block. The last two release
  // the lock. `hit` is hit_.
  void FreeContended(Allocation* allocation) noexcept;
  void FreeLocked(ChainState& hit, Allocation* allocation,
                  ThreadState& self) noexcept;
  void FreePastCache(ChainState& hit, Allocation* allocation,
                     ThreadState& self) noexcept;
  // Lets threads leave blocks, if every call may hit. Hold the lock.
  void OpenToFrees() noexcept;
  void FreeSlowly(Allocation* allocation) noexcept;
  // Whether a call may skip the layers: no layer or capture needs to see it.
  bool MayHit() const noexcept { return hit_path_ != nullptr && !gate_.any(); }
  // Does not notify waiting requests: a request that waits closed the remote
  // frees with EndWaiting before it searched.
  void FreeLeft(std::span<Block* const> blocks) noexcept override;

  const std::size_t hit_alignment_;
  const bool takes_remote_frees_;  // if every call may hit
};

// ---- Inline, so that the facade's functions end in these.

inline Allocation* Front::Alloc(ChainState& hit, std::size_t bytes,
                                ThreadState& self) {
  if (!hit.lock.try_lock(self)) [[unlikely]] {
    return AllocContended(bytes);
  }
  return AllocLocked(hit, bytes, self);
}

[[gnu::always_inline]] inline Allocation* Front::AllocLocked(
    ChainState& hit, std::size_t bytes, ThreadState& self) {
  if (!hit.is_plain()) [[unlikely]] {
    return AllocSlowly(bytes);
  }
  Block* const block = TakeAtOnce(hit, bytes);
  if (block == nullptr) return AllocPastCache(hit, bytes, self);
  if (hit.counts.is_beyond_limit()) [[unlikely]] {
    return AllocBeyondPeak(hit, block);
  }
  hit.lock.unlock(self);
  return block->allocation();
}

inline Block* Front::TakeAtOnce(ChainState& hit, std::size_t bytes) noexcept {
  Block* const block = hit.cache.Take(bytes);
  if (block != nullptr) Start(hit, block, bytes);
  return block;
}

inline void Front::Start(ChainState& hit, Block* block,
                         std::size_t bytes) noexcept {
  block->requested = bytes;
  block->owner = this;
  hit.counts.CountBelowPeak(*block);
}

}  // namespace strata

#endif  // STRATA_FACADE_CHAINS_FRONT_H_
