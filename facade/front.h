#ifndef STRATA_FACADE_FRONT_H_
#define STRATA_FACADE_FRONT_H_

#include <glog/logging.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <unordered_set>

#include "strata/allocation/chain_lock.h"
#include "strata/allocation/chain_stream.h"
#include "strata/allocation/decorator.h"
#include "strata/allocation/hit_state.h"
#include "strata/allocation/remote_frees.h"
#include "strata/allocation/stat_allocator.h"
#include "strata/allocation/streams/capture_gate.h"
#include "strata/allocation/thread_census.h"
#include "strata/allocation/usage.h"
#include "strata/facade/place_state.h"
#include "strata/facade/pointer_group.h"

namespace strata {

// The outermost layer of a chain, and the owner of what users hold: it serves
// a hit past the layers, walks them otherwise, and keeps the chain alive until
// its last allocation is freed.
//
// Model: a request of natural alignment without flags or a freed_before goes to
//   the chain's hit path, if it has one; a free without mark or offset goes
//   back the same way. When the facade drops the front, it becomes an orphan
//   and destroys itself with the last free, from whichever thread that comes.
//   While captures are announced every call walks, and requests of a stream
//   that takes part in one are served by its pool.
//   Alloc and FreePlain are what a hit of the front cache needs and nothing
//   else: the only function they call is the last thing they do, so that no
//   register is saved. What they cannot do starts anew in AllocSlowly and
//   FreeSlowly. Whether they may, one word says: of the gate, which counts
//   announced captures and requests that wait for memory.
//   Once a free has met the lock taken, or another thread's, those threads that
//   only free leave their blocks (remote_frees.h) in place of taking the
//   lock, until none does any more, requests of the place wait for memory, or
//   the front is an orphan. A hit does not look at them: who finds nothing in
//   the front cache takes them in, and so does who would set a peak.
// Threads: any thread.
// Cost: a hit takes one uncontended lock and no heap or device call.
class Front final  // NOLINT(cppcoreguidelines-virtual-class-destructor)
    : public Decorator,
      private Postponable,
      private FreeTaker {
 public:
  enum class Role : std::uint8_t {
    kEager,  // its stream's; requests of captures go to their pools
    kGraph,  // of a graph pool
  };
  Front(std::shared_ptr<PlaceState> state, std::shared_ptr<ChainStream> stream,
        std::shared_ptr<Allocator> chain, Role role = Role::kEager);

  const std::shared_ptr<ChainStream>& chain_stream() const { return stream_; }
  HitState& hit_state() const { return hit_; }
  // Of its place, in its facade.
  const PlaceState& state() const { return *state_; }

  // The facade lets go: the front is an orphan, and may be gone on return.
  void Drop() noexcept;
  // Keeps the front until Unpin, after which it may be gone; false if it ends.
  bool TryPin() noexcept;
  void Unpin() noexcept;

  // Whether an allocation was ever asked of it.
  bool was_used() const { return was_used_.load(std::memory_order_relaxed); }

  // Whether frees may wait; if so, EndWaiting takes them in, and has none wait
  // until the next one that is contended.
  bool may_have_waiting() const { return hit_.lock.is_open(); }
  void EndWaiting() noexcept;
  void set_debug_fill(const DebugFill* fill) override;

  // Allocate(bytes), with a hit served past everything but the hit path. For
  // an AllocationPtr. The calling thread has called AllocFirst. `hit` is
  // hit_state(): who calls knows it without a look at the front.
  [[gnu::always_inline]] Allocation* Alloc(HitState& hit, std::size_t bytes);
  // The same for a thread's first.
  Allocation* AllocFirst(std::size_t bytes);

  // For the C ABI: what it knows the front's pointers by; null if nothing yet.
  PointerGroup* pointers() const;
  // `group` serves this front from now on; false if it serves another one.
  bool Share(const std::shared_ptr<PointerGroup>& group) noexcept;
  // Memory of the front will be freed, and may be kept by the front cache, in a
  // region that is not settled for its group: there was no host memory to make
  // one, or several fronts share it and this one may have its own some day.
  // Hits look at the region from now on, as long as the front lives.
  void NoteUnknown() noexcept;
  // Alloc, whose pointer is known there before anybody else can free it, by the
  // lock that is taken anyway: in parts, of which the first is all that a hit
  // needs, and calls nothing. Who calls goes on with the one that the progress
  // says, and with the same Hold, one of ChainLock's, as the last thing he
  // does. What is known may be freed at once, by a thread that frees something
  // twice: so it is looked at before.
  enum class Progress : std::uint8_t {
    kDone,
    kNone,       // the lock could not be had at once; nothing is done
    kSlowly,     // a hit is not all there is to do: AllocSlowly; the same
    kPastCache,  // the front cache has nothing; the lock is held
    kNoSlot,     // no slot is free, or there is more to look at; the same
  };
  struct Started {
    Progress progress;
    Block* block;  // of kNoSlot; else null
  };
  // kDone: `*pointer` is set. `hit` as for Alloc.
  template <class Hold>
  [[gnu::always_inline]] Started StartKnown(HitState& hit, std::size_t bytes,
                                            void** pointer) noexcept;
  // Of kPastCache: the block is taken, as for kNoSlot; null if none was found
  // at once, and no lock is held: then AllocSlowly has to look.
  template <class Hold>
  [[gnu::always_inline]] Block* TakePastCache(HitState& hit,
                                              std::size_t bytes) noexcept;
  // Of kNoSlot: `*pointer` is set. False if somebody else has to make the block
  // known. No lock is held then.
  template <class Hold>
  [[gnu::always_inline]] bool MakeKnown(HitState& hit, Block* block,
                                        void** pointer) noexcept;
  // Of kNone: all of it.
  struct Finished {
    Allocation* unknown;  // somebody has to see to that; null if it is known
    void* data;           // of one that is known
  };
  Finished AllocKnown(std::size_t bytes);
  Allocation* AllocSlowly(std::size_t bytes);
  // In parts, too: frees `data`, which may be any, if it is among the pointers
  // of `group`. `lock` was that group's guard.
  template <class Hold>
  [[gnu::always_inline]] static Progress StartFree(PointerGroup& group,
                                                   ChainLock& lock,
                                                   const void* data) noexcept;
  // Of kNoSlot: false, and nothing is done, if that takes a search, which comes
  // next: false if the pointer is not there, and no lock is held then.
  template <class Hold>
  [[gnu::always_inline]] static bool FreePastSlot(PointerGroup& group,
                                                  ChainLock& lock,
                                                  const void* data) noexcept;
  template <class Hold>
  static bool FreeBySearch(PointerGroup& group, ChainLock& lock,
                           const void* data) noexcept;
  // Of kNone: all of it. False, and nothing is done, if it is not there.
  static bool FreeKnown(PointerGroup& group, const void* data) noexcept;

  Allocation* TryAllocate(const Request& request,
                          Failure& failure) noexcept override;
  void DoFree(Allocation* allocation) noexcept override;
  // The front hears of the end of `stream` from here on.
  bool RecordStream(Allocation* allocation, Stream stream) noexcept override;
  bool RecordUse(Allocation* allocation, Stream stream,
                 Event event) noexcept override;
  // Nothing while a capture is announced.
  std::size_t Release() noexcept override {
    return gate_.any() ? 0 : underlying()->Release();
  }
  Stream stream() const override { return stream_->stream(); }
  ChainLock& lock() const { return hit_.lock; }
  const char* name() const override { return "front"; }
  // These ask layers for what a driver may have to be asked, also where a
  // request has failed; so that a capture of the thread goes on.
  Stats stats() const override;
  void ResetPeak() override;
  void Accept(AllocatorVisitor& visitor) const override;

 private:
  friend class PlaceState;

  ~Front() override;

  void FreePlain(Allocation* allocation) noexcept override;

  Allocation* TakeHit(std::size_t bytes) noexcept;
  // The rest of Alloc and FreePlain if the word is not all of the lock, or is
  // taken.
  Allocation* AllocInTurn(std::size_t bytes);
  void FreeInTurn(Allocation* allocation) noexcept;
  // From and to the front cache; null and false if it does not. Hold the lock.
  Block* TakeAtOnce(HitState& hit, std::size_t bytes) noexcept;
  static bool GiveAtOnce(HitState& hit, Block* block) noexcept;
  // Counts a block of the hit path as the user's. Hold the lock, and see to the
  // peak (UseCounts::is_beyond_peak).
  void Start(HitState& hit, Block* block, std::size_t bytes) noexcept;
  // Sees to it, once what waits is taken in.
  template <class Hold>
  static void RaisePeak(HitState& hit) noexcept;
  // The rest of Alloc once the lock is held; if the front cache has nothing.
  template <class Hold>
  Allocation* AllocWith(HitState& hit, std::size_t bytes);
  template <class Hold>
  Allocation* AllocPastCache(HitState& hit, std::size_t bytes);
  template <class Hold>
  Allocation* AllocBeyondPeak(HitState& hit, Block* block) noexcept;
  // A block of the front cache once what waits was taken in; null if there is
  // none. Hold the lock.
  Block* TakeAmongLeft(HitState& hit, std::size_t bytes) noexcept;
  // Whether what `group`, whose guard the calling thread holds, has for the
  // front that it serves is all that this free needs.
  static bool MayFreePlainly(const PointerGroup& group,
                             const Allocation& allocation) noexcept {
    const Front* const front = group.front();
    return allocation.owner() == front && IsPlain(*allocation.block()) &&
           ThreadCensus::IsCounted(front->retry_place_);
  }
  // The rest of Alloc if the lock could not be had at once.
  Allocation* AllocContended(std::size_t bytes);
  // The rest of StartFree and FreePastSlot once `allocation` was taken out.
  template <class Hold>
  static void FreeTaken(PointerGroup& group, ChainLock& lock,
                        Allocation* allocation) noexcept;
  // The rest of FreePlain once the lock is held; if the front cache does not
  // keep it. They end that. `hit` is hit_.
  template <class Hold>
  void FreeWith(HitState& hit, Allocation* allocation) noexcept;
  template <class Hold>
  void FreePastCache(HitState& hit, Allocation* allocation) noexcept;
  // The rest of FreePlain if the thread may not be counted, or blocks may be
  // left; if the lock could not be had at once; if it is for others.
  void FreeUnplainly(Allocation* allocation) noexcept;
  void FreeContended(Allocation* allocation) noexcept;
  void FreeElsewhere(Allocation* allocation) noexcept;
  // Whether the calling thread is at home, where it frees with the lock: since
  // it allocated here what was not at hand, while blocks might be left.
  bool IsHome() const noexcept;
  void SetHome(bool is_home) const noexcept;
  // Has blocks be left, or no longer. Hold the lock.
  void OpenToFrees() noexcept;
  void CloseToFrees() noexcept;
  void FreeSlowly(Allocation* allocation) noexcept;
  // With lock_ held, after a block of `bytes` was given: counts it off, and
  // tells who waits for memory.
  void EndFree(std::size_t bytes) noexcept;
  Allocation* Walk(const Request& request, Failure& failure) noexcept;
  // Whether the layers serve the flags of the request; else `failure` says so.
  bool CanServe(const Request& request, Failure& failure) const noexcept;
  void WalkFree(Allocation* allocation) noexcept;
  // While captures are announced.
  Allocation* TryAllocateGated(const Request& request,
                               Failure& failure) noexcept;
  // Past the layers: no layer or capture has to see this call.
  bool MayHit() const noexcept { return hit_path_ != nullptr && !gate_.any(); }
  // The same, and nothing has to be done but what Alloc and FreePlain do. Hold
  // the lock: who waits for memory was counted before he took it last.
  static bool MayHitPlainly(const HitState& hit) noexcept {
    return hit.attention->load(std::memory_order_relaxed) == 0;
  }
  // Whether walks have to be counted here, as the Stat layer does it otherwise:
  // where there is a hit path, no layer keeps back what that has to count.
  bool counts_itself() const {
    return stat_ == nullptr || hit_path_ == nullptr;
  }
  // Whether this was the end of it. Hold the lock.
  bool is_over() const {
    return orphan_ && pins_ == 0 && hit_.counts.live_allocations() == 0;
  }
  // Now, or once no capture is announced.
  void Destroy() noexcept;
  void End() noexcept override;
  // FreeTaker. Told nobody: who waits has looked here since (EndWaiting).
  void TakeIn(std::span<Block* const> blocks) noexcept override;

  // After so many frees of threads at home without one that was left, none is
  // expected any more.
  static constexpr std::uint32_t kQuietFrees = 4096;

  const std::shared_ptr<PlaceState> state_;
  const std::shared_ptr<ChainStream> stream_;
  CaptureGate& gate_;          // of the facade
  RetryQueue& retry_;          // of the place, told of hits
  HitPath* const hit_path_;    // null: every call walks
  StatAllocator* const stat_;  // of the chain; null without that layer
  const std::size_t hit_alignment_;
  const Role role_;
  const bool may_wait_;                 // frees, at the lock
  std::optional<LastingHitState> own_;  // where hit_ is nobody else's

  // What a hit reads, in one cache line.
  alignas(64) HitState& hit_;        // the hit path's, that of stat_, or own_
  const std::uint64_t retry_place_;  // of retry_
  // The same, and kNowhere while blocks may be left: then no free is plain.
  std::atomic<std::uint64_t> plain_place_;
  // Guarded by hit_.lock:
  // pointers_, if for each block of the front cache the region of its start was
  // settled for that group: the cache has whole blocks that users of this front
  // freed, and PointerMap settles before they can. Null otherwise.
  PointerGroup* hit_pointers_ = nullptr;
  std::shared_ptr<PointerGroup> pointers_;
  bool keeps_unknown_ = false;
  std::uint64_t pins_ = 0;
  std::uint32_t quiet_frees_ = 0;  // of threads at home
  bool orphan_ = false;
  std::atomic<bool> was_used_{false};
  RemoteFrees remote_frees_;
  // Of the lists of state_:
  std::size_t list_position_ = 0;  // guarded by its list_mutex_
  std::uint64_t number_ = 0;       // above those of fronts before; constant
  // Uids of streams whose ends it hears of; guarded by its heeds_mutex_.
  std::unordered_set<std::uint64_t> heeds_;
  // One of them, or 0; to look at without the lock.
  std::atomic<std::uint64_t> heeded_{0};
};

// ---- Inline, so that what the facade calls ends in it.

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
  RaisePeak<Hold>(hit);
  Hold::Release(hit.lock);
  return block->allocation();
}

template <class Hold>
void Front::RaisePeak(HitState& hit) noexcept {
  Hold::Keep();
  hit.lock.TakeIn();
  Hold::Unkeep();
  hit.counts.RaisePeak();
}

template <class Hold>
[[gnu::noinline]] Allocation* Front::AllocPastCache(HitState& hit,
                                                    std::size_t bytes) {
  Block* const block = TakePastCache<Hold>(hit, bytes);
  if (block == nullptr) return AllocSlowly(bytes);
  Hold::Release(hit.lock);
  return block->allocation();
}

template <class Hold>
inline Front::Started Front::StartKnown(HitState& hit, std::size_t bytes,
                                        void** pointer) noexcept {
  if (!Hold::TakeAtOnce(hit.lock)) [[unlikely]] {
    return {Progress::kNone, nullptr};
  }
  if (!MayHitPlainly(hit)) [[unlikely]] {
    Hold::Release(hit.lock);
    return {Progress::kSlowly, nullptr};
  }
  Block* const block = TakeAtOnce(hit, bytes);
  if (block == nullptr) return {Progress::kPastCache, nullptr};
  // Its region need not be looked at, which may have to be fetched.
  PointerGroup* const pointers = hit_pointers_;
  if (hit.counts.is_beyond_peak() || pointers == nullptr ||
      !pointers->InsertAtOnce(block->data, block->allocation())) {
    return {Progress::kNoSlot, block};
  }
  DCHECK(pointers->Owns(block->data)) << block->data;
  *pointer = block->data;
  Hold::Release(hit.lock);
  return {Progress::kDone, nullptr};
}

template <class Hold>
inline Block* Front::TakePastCache(HitState& hit, std::size_t bytes) noexcept {
  Hold::Keep();
  Block* block = hit.lock.is_open() ? TakeAmongLeft(hit, bytes) : nullptr;
  if (block == nullptr && bytes != 0) block = hit_path_->TakeCached(bytes);
  Hold::Unkeep();
  if (block == nullptr) [[unlikely]] {
    Hold::Release(hit.lock);
    return nullptr;
  }
  Start(hit, block, bytes);
  hit.counts.RaisePeak();
  return block;
}

template <class Hold>
inline bool Front::MakeKnown(HitState& hit, Block* block,
                             void** pointer) noexcept {
  if (hit.counts.is_beyond_peak()) [[unlikely]] {
    RaisePeak<Hold>(hit);
  }
  PointerGroup* const pointers = pointers_.get();
  void* const data = block->data;
  const bool is_known = pointers != nullptr && pointers->Owns(data) &&
                        pointers->InsertHeld(data, block->allocation());
  if (is_known) *pointer = data;
  Hold::Release(hit.lock);
  return is_known;
}

template <class Hold>
inline Front::Progress Front::StartFree(PointerGroup& group, ChainLock& lock,
                                        const void* data) noexcept {
  if (!Hold::TakeAtOnce(lock)) [[unlikely]] {
    return Progress::kNone;
  }
  // The group may have changed fronts, and the lock, too.
  if (!group.IsGuardedBy(lock) || !Hold::IsAll(lock)) [[unlikely]] {
    Hold::Release(lock);
    return Progress::kNone;
  }
  Allocation* const allocation = group.TakeAtOnce(data);
  if (allocation == nullptr) return Progress::kNoSlot;
  FreeTaken<Hold>(group, lock, allocation);
  return Progress::kDone;
}

template <class Hold>
inline bool Front::FreePastSlot(PointerGroup& group, ChainLock& lock,
                                const void* data) noexcept {
  Allocation* const allocation = group.TakePastSlot(data);
  if (allocation == nullptr) [[unlikely]] {
    return false;
  }
  FreeTaken<Hold>(group, lock, allocation);
  return true;
}

template <class Hold>
bool Front::FreeBySearch(PointerGroup& group, ChainLock& lock,
                         const void* data) noexcept {
  Allocation* const allocation = group.TakeBySearch(data);
  if (allocation == nullptr) {
    Hold::Release(lock);
    return false;
  }
  FreeTaken<Hold>(group, lock, allocation);
  return true;
}

template <class Hold>
inline void Front::FreeTaken(PointerGroup& group, ChainLock& lock,
                             Allocation* allocation) noexcept {
  if (!MayFreePlainly(group, *allocation)) [[unlikely]] {
    Hold::Release(lock);
    return allocation->owner()->DoFree(allocation);
  }
  group.front()->FreeWith<Hold>(HitState::Of(lock), allocation);
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
  // Counted first: once given, it may be somebody else's.
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
  // The cache writes over it.
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
