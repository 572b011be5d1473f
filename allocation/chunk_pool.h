#ifndef STRATA_ALLOCATION_CHUNK_POOL_H_
#define STRATA_ALLOCATION_CHUNK_POOL_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "strata/allocation/call_gate.h"
#include "strata/allocation/chain_stream.h"
#include "strata/allocation/chunk_holder.h"
#include "strata/allocation/decorator.h"
#include "strata/allocation/device_room.h"
#include "strata/allocation/driver_held.h"
#include "strata/allocation/reclaimer.h"
#include "strata/platform/function_ref.h"
#include "strata/platform/spin_lock.h"

namespace strata {

class EndedPool;

// The edge between the strategies of one place and the system: it counts every
// byte held, enforces the limit, and is how chunks change streams.
//
// Model: bytes are claimed from the limit before the system is asked, so
//   concurrent growth cannot exceed it. A chunk a strategy no longer needs is
//   freed, or offered: an offered one serves the next growth of any stream,
//   which is first ordered after the work that may still use it. Before a
//   strategy grows it may Borrow what those of other streams have left over,
//   once their work there is done. reserved_bytes() counts all of it once,
//   always exact.
//   When memory is exhausted the pool moves an idle chunk of another stream
//   within reach, then gives all idle chunks of all strategies to the system.
//   Memory that the driver pools for the strategies (DriverHeld) counts as
//   reserved too, and goes back with the idle chunks; so does what the system
//   has refused to take back.
// Threads: any thread. No lock is held during a call of the device, of the
//   layer below, of a holder or of a visitor.
// Source: paddle.md §2 gpu_memory_limit_mb, §3.13; cuda_semantics.md §5.2 M3,
//   M6.
class ChunkPool final : public Decorator {
 public:
  // `limit_bytes` 0: no limit. `reclaimer` is the ladder of the place.
  // `limit_flag` is the name for failures: Failure::limit_flag.
  ChunkPool(std::shared_ptr<Allocator> system, std::size_t limit_bytes,
            std::shared_ptr<Reclaimer> reclaimer, const char* limit_flag = "");
  // On another one, which gets the chunks that this one cannot wait for when it
  // ends.
  ChunkPool(std::shared_ptr<ChunkPool> below, std::size_t limit_bytes,
            std::shared_ptr<Reclaimer> reclaimer);
  ~ChunkPool() override;

  // A chunk whose first use will be on `user`: an offered one of at most twice
  // the size if there is one. As TryAllocate otherwise.
  Allocation* TryAllocateFor(const Request& request, ChainStream& user,
                             Failure& failure) noexcept;
  // Takes over a chunk that all work submitted to `last_user` may still use.
  // While that cannot be proven done, nobody gets it.
  void Offer(Allocation* chunk, ChainStream& last_user) noexcept;

  // The holders that Borrow and RecallLoans ask. To ask more than kMostAsked of
  // them takes longer than the driver call that it may save (0.1 us each,
  // docs/exchange.md; cudaMalloc 60 us and more). Where there are more, they
  // take turns from growth to growth.
  enum class Asked : std::uint8_t { kSome, kAll };
  static constexpr std::size_t kMostAsked = 512;
  // In place of growth: an idle chunk, or a free block as a loan, of a holder
  // other than `borrower`, the one with least to spare; null, and nothing has
  // changed, if nobody has any whose earlier use comes before what the user
  // submits from now on. Never during a capture on one of the two streams. It
  // is given back by DoFree. Device calls: at most one event per holder; see
  // LoanRequest::Effort.
  Allocation* Borrow(const LoanRequest& request, const ChunkHolder& borrower,
                     Asked asked) noexcept;
  // Has holders return `which` idle loans. Returns their bytes.
  std::size_t RecallLoans(LoanRecall which, Asked asked) noexcept;
  // Whether there is anybody to borrow from.
  bool has_lenders() const noexcept {
    return holder_count_.load(std::memory_order_relaxed) > 1;
  }
  // Keeps `holder`, which serves nobody any more, until the last loan of it has
  // come back. May be the end of the pool, unless the caller holds it.
  void Retire(std::unique_ptr<ChunkHolder> holder) noexcept;

  // Has the strategies that serve `stream` alone, which is about to be
  // destroyed, offer all idle memory. Waits for nothing.
  void GiveUpIdleOf(Stream stream) noexcept;
  // From now on, TellOfEnd(stream) calls holder.OtherStreamEnds(), once.
  //
  // Errors: std::bad_alloc.
  void HeedEnd(Stream stream, ChunkHolder& holder);
  // Tells the holders that heed its end that a stream is about to go.
  //
  // Cost: visits no other holder.
  void TellOfEnd(Stream stream) noexcept;

  // Before a growth of `bytes`: gives idle chunks to the system, if together
  // they cover it and their work is done, so that the growth reuses their
  // memory. Does nothing once the bytes given back this way, plus `bytes`,
  // exceed `limit` times the reserved bytes; so the cost stays a fraction of
  // that of growing. A chunk of more than kMostGivenBack times the growth
  // stays: it would be missed sooner than the growth is. Returns the bytes
  // given.
  // Source: memory_policy.md §5.7 (debt limit); docs/auto_growth.md.
  static constexpr std::size_t kMostGivenBack = 64;
  std::size_t GiveBackBeforeGrowth(std::size_t bytes, double limit) noexcept;

  // An estimate of the bytes by which this pool can grow: the smaller of the
  // bytes that the limit leaves and the bytes that `device`, if it is not null,
  // has free. SIZE_MAX if nothing bounds it. Cost: that of
  // DeviceRoom::Estimate.
  std::size_t RoomBytes(Device* device) noexcept;
  // The last result of RoomBytes; SIZE_MAX before the first.
  std::size_t last_room_bytes() const noexcept {
    return last_room_bytes_.load(std::memory_order_relaxed);
  }

  // For another pool on the same device: gives idle memory to the system whose
  // last use is over, until it is `bytes`; returns the bytes given. Waits for
  // no stream.
  std::size_t GiveBackDone(std::size_t bytes) noexcept;
  // An upper bound on the bytes that the system gains if all idle memory is
  // given back; `of_limit`: on the bytes that the limit gains.
  std::size_t ReclaimableBytes(bool of_limit) noexcept;
  // As ReclaimableBytes, without memory that the system refused to take back.
  std::size_t IdleBytes(bool of_limit) noexcept;
  // Gives all idle memory to the system; returns the bytes given. Stops waiting
  // for streams once `bytes` were given without.
  std::size_t GiveBackAll(std::size_t bytes) noexcept;

  // `holder`, whose stream does not change, is asked for idle chunks until it
  // is removed; RemoveHolder waits for calls in flight. Both are O(1),
  // amortised.
  void AddHolder(ChunkHolder& holder);
  void RemoveHolder(ChunkHolder& holder) noexcept;

  // Counts `bytes` that a strategy is about to allocate from the driver itself
  // against the limit, until Unclaim. False, with the reason in `failure`, if
  // the limit forbids it.
  bool Claim(std::size_t bytes, Failure& failure) noexcept;
  void Unclaim(std::size_t bytes) noexcept;
  // The DriverHeld that the strategies of this place share: the one that any of
  // them holds, or the result of `make` if there is none. Its memory is counted
  // here as long as a strategy holds it.
  std::shared_ptr<DriverHeld> ShareDriverHeld(
      const std::function<std::shared_ptr<DriverHeld>()>& make);
  // A block of `bytes` that another holder than `asking` keeps, and whose last
  // use is over, in place of one of the driver (ChunkHolder::PartWith). It
  // stays claimed. Null if no holder that is asked has one; where there are
  // many, holders are asked by turns.
  Block* FetchKept(std::size_t bytes, const ChunkHolder& asking) noexcept;
  // Whether chunks and what the driver has reserved by itself are within the
  // limit together. If not, idle memory of the driver's goes back first. No
  // driver call while there are no chunks, or no limit. Of two threads that
  // grow the one and the other, one sees what the other has.
  bool FitsBesideChunks() noexcept;

  // Memory that a strategy creates and maps by itself, in place of chunks. The
  // strategy claims the bytes before it calls the driver; UnclaimPages undoes
  // that, and `was_refused` says that the device had no memory.
  // Errors: as TryAllocate, in `failure`; then nothing is claimed.
  bool ClaimPages(std::size_t bytes, Failure& failure) noexcept;
  void UnclaimPages(std::size_t bytes, bool was_refused) noexcept;
  // Whether the device has `bytes` free that the limit allows, by a new answer
  // of the device. If not, counts a failure.
  bool HasRoomNow(Device& device, std::size_t bytes) noexcept;
  // The claimed bytes are held from now on, in `handles` pieces.
  void HoldPages(std::size_t bytes, std::size_t handles) noexcept;
  // `give` returns a piece of held bytes to the system; false: the system
  // refused them, and they stay counted.
  void ReturnPages(std::size_t bytes, FunctionRef<bool()> give) noexcept;
  // Tells the visitors that `bytes` at `data` were mapped (+1), or are about to
  // be unmapped (-1).
  void TellOfRange(void* data, std::size_t bytes, int count_change) noexcept;
  // Address space that the strategies of this place reserve, at most `most`
  // bytes together. False, and nothing is claimed, beyond that.
  bool ClaimAddresses(std::size_t bytes, std::size_t most) noexcept;
  void UnclaimAddresses(std::size_t bytes) noexcept;
  // Gives idle memory of all holders but `asking` to the system whose last use
  // is over, until it is `bytes`; returns the bytes given. Waits for nothing.
  std::size_t GiveBackOfOthers(std::size_t bytes,
                               const ChunkHolder& asking) noexcept;

  // A chunk came from or went to the system: +1 or -1. Each is visited once
  // for either. Visitors run in the order of AddVisitor for a chunk that came,
  // and in reverse, before the memory goes, for one that leaves; so the last to
  // build on a chunk is the first to let go. They do not throw.
  using Visitor =
      std::function<void(void* data, std::size_t bytes, int count_change)>;
  // Chunks that exist already are not visited.
  void AddVisitor(Visitor visitor);

  // Whether no byte held, or being asked for, is in use: all are in idle
  // chunks. False if chunks come and go meanwhile.
  bool IsUnused() noexcept;

  // The blocks of the place that belong to none of the layers `listed`: blocks
  // of strategies whose chains are gone, offered chunks, and memory that the
  // system refused to take back. With the blocks of `listed` they are all that
  // is reserved.
  //
  // Errors: std::bad_alloc.
  std::vector<BlockInfo> BlocksBeside(
      const std::set<const Allocator*>& listed) const;

  std::size_t limit_bytes() const { return limit_bytes_; }
  const char* limit_flag() const { return limit_flag_; }
  // Driver calls only if the driver pools memory for a strategy.
  std::size_t reserved_bytes() const noexcept;

  Allocation* TryAllocate(const Request& request,
                          Failure& failure) noexcept override;
  // Every use of the chunk is complete. A loan goes to its lender.
  void DoFree(Allocation* chunk) noexcept override;
  // The same; the bytes that the system took (0 if it refused to), or that went
  // home to their lender.
  std::size_t Return(Allocation* chunk) noexcept;
  // Frees the offered chunks whose last use is over, after waiting for it, and
  // all that is idle in ended pools on this one.
  std::size_t Release() noexcept override;
  // The same, once nobody allocates here any more. A chunk that cannot be
  // waited for goes to the pool below; without one, to the system, which is
  // logged.
  void Close() noexcept;
  // Of a pool on another one: nobody allocates here any more, but blocks may be
  // live. Gives all idle memory back; the pool below asks for what is idle
  // later.
  void EndAllocations() noexcept;
  const char* name() const override { return "chunk_pool"; }
  Stats stats() const override;
  void ResetPeak() override;
  Reclaimer* reclaimer() const override { return reclaimer_.get(); }
  // Adds a rung to the ladder of the place; there is one.
  Reclaimer::Registration RegisterReclaim(ReclaimStep step,
                                          ReclaimSource& source,
                                          int priority = 0) const {
    return Reclaimer::Register(reclaimer_, step, source, priority);
  }
  HitPath* hit_path() override { return nullptr; }

 private:
  struct Idle {
    Allocation* chunk = nullptr;
    // Of the last user; null: none.
    std::shared_ptr<StreamTimeline> timeline;
    std::uint64_t tick = 0;  // after its work
    // Of the last users, who could not be waited for; null: none. Without
    // either, the chunk is free.
    std::shared_ptr<ChainStream> stream;
  };
  struct HolderEntry {
    ChunkHolder* holder = nullptr;
    CallGate gate;             // closed once the holder is removed
    std::uint64_t number = 0;  // above those of holders before; constant
    // Uids of streams whose ends the holder heeds; guarded by lists_mutex_.
    std::unordered_set<std::uint64_t> heeds;
  };
  using Entries =
      std::unordered_multimap<std::uint64_t, std::shared_ptr<HolderEntry>>;
  using HolderList = std::vector<std::shared_ptr<HolderEntry>>;
  // The two rungs of the ladder that the pool stands for.
  class TakeStep;
  class ReleaseStep;

  ChunkPool(std::shared_ptr<Allocator> underlying, ChunkPool* below,
            std::size_t limit_bytes, std::shared_ptr<Reclaimer> reclaimer,
            const char* limit_flag);
  // False if the host has no room for one more on the list.
  bool Keep(const Idle& idle) noexcept;
  Allocation* TakeOffered(std::size_t bytes, ChainStream& user) noexcept;
  // Takes one of at least `bytes` and at most twice that off the list, or one
  // of any size, and keeps its place until PutBack or GiveUpPlace. One without
  // chunk if there is none.
  Idle TakeOut(std::size_t bytes) noexcept;
  Idle TakeOldestOut() noexcept;
  Idle TakeOutLocked(std::vector<Idle>::iterator found) noexcept;
  void PutBack(const Idle& idle) noexcept;
  // True once `user` runs only after the last use.
  static bool OrderAfter(const Idle& idle, ChainStream& user) noexcept;
  // False if it could not be waited for.
  static bool AwaitLastUse(const Idle& idle) noexcept;
  // Never waits.
  static bool IsLastUseOver(const Idle& idle) noexcept;
  // Gives offered chunks whose last use is over to the system, until they are
  // `bytes` together; returns their bytes. Never waits.
  std::size_t GiveOfferedDone(std::size_t bytes) noexcept;
  std::size_t GiveOffered(bool all) noexcept;
  // One round of it: what is on the list now. Sets `has_given` if something
  // leaves the list.
  std::size_t GiveListed(bool all, bool& has_given) noexcept;
  // Returns what the layer below took.
  std::size_t GiveToSystem(const Idle& idle, bool is_done) noexcept;
  // The layer below gets the chunk, by `give`; it is held here no more.
  void GiveBelow(const Allocation* chunk, FunctionRef<void()> give) noexcept;
  void GiveUpPlace() noexcept;
  void NotifyIdle() noexcept;
  bool HasRetired() const noexcept;
  void KeepRetired(std::unique_ptr<ChunkHolder> holder) noexcept;
  // The one that was kept first; null without one.
  std::unique_ptr<ChunkHolder> TakeRetired() noexcept;
  // Ends those of the first `most` retired holders that have no loan out;
  // returns the bytes of their idle chunks, but for those that they have to
  // offer.
  std::size_t BuryRetired(std::size_t most = SIZE_MAX) noexcept;
  void Visit(void* data, std::size_t bytes, int count_change) noexcept;
  // As Claim, for a chunk: counts what the driver pools as well.
  bool ClaimChunk(std::size_t bytes, Failure& failure) noexcept;
  void UnclaimChunk(std::size_t bytes) noexcept;
  bool RefuseClaim(Failure::Reason reason, std::size_t bytes,
                   std::size_t claimed, Failure& failure) const noexcept;
  void Explain(Failure& failure, std::size_t bytes) const noexcept;

  // The holders to ask: `count`, from `first` on, of the first `size` entries
  // of `list`. Some may be gone. Other threads may append to the list
  // meanwhile, within its capacity.
  struct Round {
    std::shared_ptr<const HolderList> list;
    const std::shared_ptr<HolderEntry>* entries;
    std::size_t size;
    std::size_t first;
    std::size_t count;

    HolderEntry& operator[](std::size_t i) const {
      return *entries[(first + i) % size];
    }
  };
  // Replaces the list by one without holders that are gone, with room for more.
  // Hold lists_mutex_. Errors: std::bad_alloc.
  void RenewHolders();
  Round RoundOf(Asked asked) const;
  // Where not all are asked, the next growth asks others.
  void AskOthersNext() noexcept {
    turn_.fetch_add(kMostAsked, std::memory_order_relaxed);
  }
  // Idle bytes of the holders of a round whose streams have finished, and the
  // holder with the best fit. An entry lasts as long as its round; its holder
  // may not: see CallGate.
  struct IdleFound {
    std::size_t bytes = 0;
    std::size_t fit = 0;  // the smallest chunk of at least what was asked for
    HolderEntry* of_fit = nullptr;
    std::size_t largest = 0;
    HolderEntry* of_largest = nullptr;
    std::size_t others = 1;  // the largest of the other holders
    // The holder whose stream was asked last. Other streams may have new work.
    const HolderEntry* asked_last = nullptr;
  };
  static IdleFound FindIdle(const Round& round, std::size_t bytes) noexcept;
  // Calls `ask` with every holder that is still there.
  void ForEachHolder(FunctionRef<void(ChunkHolder&)> ask,
                     Asked asked = Asked::kAll) noexcept;
  std::size_t MoveWithinReach(Stream stream, std::size_t bytes) noexcept;
  // Gives the idle memory of ended pools on this one to the system.
  std::size_t GiveBackEnded() noexcept;
  // Null if no strategy holds any.
  std::shared_ptr<DriverHeld> driver_held() const;

  const std::size_t limit_bytes_;
  const char* const limit_flag_;  // sets limit_bytes_; "" if not known
  const std::shared_ptr<Reclaimer> reclaimer_;
  ChunkPool* const below_;  // null: the layer below is the system's
  // Held, and asked of the system just now: what the limit bounds.
  std::atomic<std::size_t> claimed_bytes_{0};
  // Those of them that are chunks, or are to be.
  std::atomic<std::size_t> chunk_bytes_{0};
  std::atomic<std::size_t> reserved_bytes_{0};  // held
  std::atomic<std::size_t> address_bytes_{0};   // of ClaimAddresses
  std::atomic<std::size_t> peak_reserved_bytes_{0};
  std::atomic<std::size_t> given_back_bytes_{0};  // before growth, in all
  std::atomic<std::uint64_t> allocations_{0};
  std::atomic<std::uint64_t> frees_{0};
  std::atomic<std::uint64_t> failures_{0};

  DeviceRoom device_room_;
  std::atomic<std::size_t> last_room_bytes_{SIZE_MAX};
  mutable SpinLock lock_;
  std::vector<Idle> offered_;  // guarded by lock_
  std::size_t taken_out_ = 0;  // that may be put back; guarded by lock_
  // Linked through ChunkHolder::next_retired_. Guarded by lock_, as is the last
  // of them and their number.
  std::unique_ptr<ChunkHolder> retired_;
  ChunkHolder* last_retired_ = nullptr;
  std::size_t retired_count_ = 0;

  mutable std::mutex lists_mutex_;
  // Replaced, never changed: readers copy the pointer. Guarded by lists_mutex_.
  std::shared_ptr<const std::vector<Visitor>> visitors_;
  // Appended to within its capacity, or replaced: a Round reads the elements
  // that were there. Few of them are gone. Guarded by lists_mutex_, as the
  // rest.
  std::shared_ptr<HolderList> holders_;
  std::unordered_map<const ChunkHolder*, std::shared_ptr<HolderEntry>>
      by_holder_;
  Entries by_stream_;  // by the uid of its stream
  // By the uid of a stream, the holders that heed its end, by their numbers.
  std::unordered_map<std::uint64_t,
                     std::map<std::uint64_t, std::shared_ptr<HolderEntry>>>
      heeding_;
  std::uint64_t added_holders_ = 0;  // so far
  std::atomic<std::size_t> holder_count_{0};
  // Index of the holder that is asked first where not all are; wraps.
  std::atomic<std::size_t> turn_{0};
  std::weak_ptr<DriverHeld> driver_held_;    // by lists_mutex_
  std::atomic<std::size_t> ended_pools_{0};  // on this one, with memory
  // This one as a holder of below_, once it has ended; else null. Written once.
  std::unique_ptr<EndedPool> ended_;

  std::unique_ptr<ReclaimSource> take_step_;
  std::unique_ptr<ReclaimSource> release_step_;
  Reclaimer::Registration take_registration_;
  Reclaimer::Registration release_registration_;
};

}  // namespace strata

#endif  // STRATA_ALLOCATION_CHUNK_POOL_H_
