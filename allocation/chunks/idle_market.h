#ifndef STRATA_ALLOCATION_CHUNKS_IDLE_MARKET_H_
#define STRATA_ALLOCATION_CHUNKS_IDLE_MARKET_H_

#include <atomic>
#include <cstddef>
#include <set>
#include <vector>

#include "strata/allocation/chain_stream.h"
#include "strata/allocation/chunk_holder.h"
#include "strata/allocation/chunks/holder_list.h"
#include "strata/allocation/chunks/loans.h"
#include "strata/allocation/chunks/memory_budget.h"
#include "strata/allocation/chunks/offered_chunks.h"

namespace strata {

// How idle memory of one place leaves the stream that used it: to another
// stream, or to the system.
//
// Model: idle memory lies with the holders (ChunkHolder), in offered chunks,
//   and in the pool of a driver (DriverHeld). Moving it within reach means that
//   another stream can obtain it, ordered after the work that used it. Giving
//   it back means that the system, or the pool below, has it.
// Units: bytes.
// Threads: any thread. No lock is held during a call of a holder, of the sink
//   or of the device.
// Source: docs/exchange.md; cuda_semantics.md §5.2 M3, M6.
class IdleMarket {
 public:
  // Where memory goes that leaves the place: the ChunkPool.
  class Sink {
   public:
    // `is_over`: the last use of the chunk. Returns the bytes that the system
    // has got.
    virtual std::size_t Give(const OfferedChunk& offered,
                             bool is_over) noexcept = 0;
    // Has the system take what it refused before; returns the bytes.
    virtual std::size_t ReleaseBelow() noexcept = 0;

   protected:
    ~Sink() = default;
  };

  // All outlive it.
  IdleMarket(Sink& sink, MemoryBudget& budget, HolderList& holders,
             Loans& loans)
      : sink_(sink), budget_(budget), holders_(holders), loans_(loans) {}

  // Takes over a chunk that all work submitted to `last_user` may still use.
  // While that cannot be proven done, nobody gets it.
  void Offer(Allocation* chunk, ChainStream& last_user) noexcept;
  // An offered chunk of at least `bytes` and at most twice that, for the work
  // that `user` submits from now on; null without one.
  Allocation* TakeOffered(std::size_t bytes, ChainStream& user) noexcept {
    return offered_.TakeFor(bytes, user);
  }
  // Has a holder of another stream offer an idle chunk of at least `bytes` and
  // at most twice that, the smallest there is. Returns its bytes.
  std::size_t MoveWithinReach(Stream stream, std::size_t bytes) noexcept;

  // Before a growth of `bytes`: gives idle chunks to the system, if together
  // they cover it and their work is done, so that the growth reuses their
  // memory. Does nothing once the bytes given back this way, plus `bytes`,
  // exceed `limit` times the held bytes; so the cost stays a fraction of the
  // cost of growing. A chunk of more than kMostGivenBack times the growth
  // stays: it would be missed sooner than the growth is. Returns the bytes
  // given.
  // Source: memory_policy.md §5.7 (debt limit); docs/auto_growth.md.
  static constexpr std::size_t kMostGivenBack = 64;
  std::size_t GiveBackBeforeGrowth(std::size_t bytes, double limit) noexcept;
  // Gives idle memory to the system whose last use is over, until it is
  // `bytes`; returns the bytes given. Does not ask `except`. Waits for nothing.
  std::size_t GiveBackDone(std::size_t bytes,
                           const ChunkHolder* except = nullptr) noexcept;
  // Gives all idle memory to the system; returns the bytes given. Stops waiting
  // for streams once `bytes` were given without.
  std::size_t GiveBackAll(std::size_t bytes) noexcept;
  // Gives offered chunks to the system after a wait for their last use, and all
  // that is idle in ended holders; returns the bytes.
  std::size_t Release() noexcept;
  // The same, also for chunks that cannot be waited for. Nobody allocates at
  // the place any more.
  void Close() noexcept;

  // The sums of all idle memory; no sizes. An upper bound while threads change
  // it.
  IdleInfo Idle() const noexcept;
  // Whether all claimed bytes are in idle chunks. False if ranges come and go
  // meanwhile.
  bool IsUnused() const noexcept;
  std::size_t offered_bytes() const noexcept { return offered_.Bytes(); }
  // The blocks of holders whose layers are not `listed`, then offered chunks.
  //
  // Errors: std::bad_alloc.
  void AppendBlocks(const std::set<const Allocator*>& listed,
                    std::vector<BlockInfo>& blocks) const;
  void AppendOffered(std::vector<BlockInfo>& blocks) const {
    offered_.AppendBlocks(blocks);
  }

 private:
  // Idle bytes of the holders of a round whose streams have finished, and the
  // holder with the best fit. An entry lasts as long as its round; its holder
  // may not: see CallGate.
  struct Found {
    std::size_t bytes = 0;
    std::size_t fit = 0;  // the smallest chunk of at least the bytes asked for
    HolderList::Entry* of_fit = nullptr;
    std::size_t largest = 0;
    HolderList::Entry* of_largest = nullptr;
    std::size_t others = 1;  // the largest of the other holders
    // The holder whose stream was asked last. Other streams may have new work.
    const HolderList::Entry* asked_last = nullptr;

    // Whether the entry's stream is idle still.
    bool IsDone(HolderList::Entry& entry) const;
  };
  static Found FindIdle(const HolderList::Round& round,
                        std::size_t bytes) noexcept;
  // Gives the one chunk that covers a growth, unless another thread took it.
  static std::size_t GiveFit(const Found& found) noexcept;
  // Gives the largest chunks first, until they are `bytes`.
  static std::size_t GiveLargest(Found found, const HolderList::Round& round,
                                 std::size_t bytes) noexcept;
  std::size_t GiveOffered(bool all) noexcept;
  // Gives the idle memory of holders that have ended.
  std::size_t GiveBackEnded() noexcept;

  Sink& sink_;
  MemoryBudget& budget_;
  HolderList& holders_;
  Loans& loans_;
  OfferedChunks offered_;
  std::atomic<std::size_t> given_back_bytes_{0};  // before growth, in all
};

}  // namespace strata

#endif  // STRATA_ALLOCATION_CHUNKS_IDLE_MARKET_H_
