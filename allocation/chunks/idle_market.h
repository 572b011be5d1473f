#ifndef STRATA_ALLOCATION_CHUNKS_IDLE_MARKET_H_
#define STRATA_ALLOCATION_CHUNKS_IDLE_MARKET_H_

#include <atomic>
#include <cstddef>
#include <memory>
#include <mutex>
#include <set>
#include <vector>

#include "strata/allocation/chunks/chunk_holder.h"
#include "strata/allocation/chunks/holder_list.h"
#include "strata/allocation/chunks/loans.h"
#include "strata/allocation/chunks/memory_budget.h"
#include "strata/allocation/chunks/offered_chunks.h"
#include "strata/allocation/streams/chain_stream.h"
#include "strata/base/function_ref.h"

namespace strata {

// Moves idle memory of one place from the stream that used it to another stream
// or to the system.
//
// Model: idle memory lies with the holders (ChunkHolder), in offered chunks,
//   and in the pool of a driver (MemoryBudget::DriverHeld). To move it within
//   reach means that another stream can obtain it, ordered after the work that
//   used it. To give it back means that the system, or the pool below, receives
//   it.
// Units: bytes.
// Threads: any thread. No lock is held during a call of a holder, of the sink
//   or of the device.
// Source: docs/exchange.md; cuda_semantics.md §5.2 M3, M6.
class IdleMarket {
 public:
  // Receiver of memory that leaves the place: the ChunkPool.
  class Sink {
   public:
    // Takes over a chunk. `is_over`: its last use has completed. Returns the
    // bytes that the system received.
    virtual std::size_t Give(const OfferedChunks::Entry& offered,
                             bool is_over) noexcept = 0;
    // Offers the system memory that it refused before. Returns the bytes that
    // it took.
    virtual std::size_t ReleaseBelow() noexcept = 0;

   protected:
    ~Sink() = default;
  };

  // All parameters must outlive this object.
  IdleMarket(Sink& sink, MemoryBudget& budget, HolderList& holders,
             Loans& loans)
      : sink_(sink), budget_(budget), holders_(holders), loans_(loans) {}

  // Takes over a chunk that work submitted to `last_user` may still use. It is
  // not reused until that work is proven complete.
  void Offer(Allocation* chunk, ChainStream& last_user) noexcept;
  OfferedChunks& offered() { return offered_; }
  const OfferedChunks& offered() const { return offered_; }
  // Makes a holder of another stream offer its smallest idle chunk of at least
  // `bytes` and at most twice that. Returns the bytes of the chunk.
  std::size_t MoveWithinReach(Stream stream, std::size_t bytes) noexcept;

  // Before a growth of `bytes`: releases idle chunks to the system, if together
  // they cover it and their work has completed. So the growth reuses their
  // memory. Does nothing once the bytes released this way, plus `bytes`, exceed
  // `limit` times the held bytes. So the cost stays a fraction of the cost of
  // growth. Does not release a chunk of more than kMostGivenBack times the
  // growth, because it would soon be allocated again. Returns the bytes
  // released.
  // Source: memory_policy.md §5.7 (debt limit); docs/rules/auto_growth.md.
  static constexpr std::size_t kMostGivenBack = 64;
  std::size_t GiveBackBeforeGrowth(std::size_t bytes, double limit) noexcept;
  // Releases idle memory to the system if its last use has completed, until the
  // sum is `bytes`. Returns the bytes released. Does not ask `except`. Never
  // waits.
  std::size_t GiveBackDone(std::size_t bytes,
                           const ChunkHolder* except = nullptr) noexcept;
  // Releases all idle memory to the system. Returns the bytes released. Stops
  // waiting for streams once `bytes` were released without a wait.
  std::size_t GiveBackAll(std::size_t bytes) noexcept;
  // Releases to the system, after waits for the last use: offered chunks, and
  // the idle memory of ended pools and of retired holders. Returns the bytes
  // released.
  std::size_t Release() noexcept;
  // Like Release(), and also releases memory if the wait for its last use
  // fails. Call it after the last allocation at the place.
  void Close() noexcept;
  // Adds the market of a pool on top of this one that has no further
  // allocations. Its live blocks keep that pool alive; its idle memory counts
  // as idle here, and is released here.
  //
  // Errors: std::bad_alloc.
  void AddEnded(const std::weak_ptr<IdleMarket>& ended);

  // Sums of all idle memory, without best_fit and largest. An upper bound while
  // threads change it.
  ChunkHolder::IdleInfo Idle() const noexcept;
  // True if all claimed bytes are in idle chunks. False if ranges change
  // meanwhile.
  bool IsUnused() const noexcept;
  // Appends the blocks of holders, except those of layers in `listed`.
  //
  // Errors: std::bad_alloc.
  void AppendBlocks(const std::set<const Allocator*>& listed,
                    std::vector<BlockInfo>& blocks) const;

 private:
  // Idle bytes of the holders with finished streams in a round, and the holder
  // with the best fit. An entry lives as long as its round; its holder may be
  // removed earlier: see CallGate.
  struct Found {
    std::size_t bytes = 0;
    std::size_t fit = 0;  // smallest chunk of at least the requested bytes
    HolderList::Entry* of_fit = nullptr;
    std::size_t largest = 0;
    HolderList::Entry* of_largest = nullptr;
    std::size_t others = 1;  // largest chunk of the other holders
    // Holder of the stream that was queried last. Other streams may have new
    // work.
    const HolderList::Entry* asked_last = nullptr;

    // True if the stream of `entry` is still idle.
    bool IsDone(HolderList::Entry& entry) const;
  };
  static Found FindIdle(const HolderList::Round& round,
                        std::size_t bytes) noexcept;
  // Releases the chunk that covers a growth, unless another thread took it.
  static std::size_t GiveFit(const Found& found) noexcept;
  // Releases the largest chunks first, until their sum is `bytes`.
  static std::size_t GiveLargest(Found found, const HolderList::Round& round,
                                 std::size_t bytes) noexcept;
  std::size_t GiveOffered(bool all) noexcept;
  // Calls `ask` with the market of each ended pool; may miss one while another
  // ends. Destroys a pool whose last block is freed meanwhile, which may wait
  // for the device.
  void ForEachEnded(FunctionRef<void(IdleMarket&)> ask) const noexcept;

  Sink& sink_;
  MemoryBudget& budget_;
  HolderList& holders_;
  Loans& loans_;
  OfferedChunks offered_;
  std::atomic<std::size_t> given_back_bytes_{0};  // before growth, in total
  mutable std::mutex ended_mutex_;
  std::vector<std::weak_ptr<IdleMarket>> ended_;  // guarded by ended_mutex_
};

}  // namespace strata

#endif  // STRATA_ALLOCATION_CHUNKS_IDLE_MARKET_H_
