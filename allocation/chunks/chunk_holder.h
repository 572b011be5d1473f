#ifndef STRATA_ALLOCATION_CHUNKS_CHUNK_HOLDER_H_
#define STRATA_ALLOCATION_CHUNKS_CHUNK_HOLDER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "strata/allocation/allocation.h"
#include "strata/allocation/visitor.h"
#include "strata/platform/stream.h"

namespace strata {

class Allocator;
class ChainStream;

// Step in which memory moves between Strata and the system on every known
// device (cuda_semantics.md D5, V3). So the release of a chunk may free up to
// one step more than its size.
inline constexpr std::size_t kSystemStepBytes = std::size_t{2} << 20;

// A strategy as the ChunkPool of its place sees it: a holder of idle memory
// that it releases on request.
//
// Model: besides idle chunks, a holder may lend a free block. To the borrower
//   the block is a chunk from the pool. To the lender it is a block in use
//   until the borrower frees the chunk, which calls TakeBack().
// Threads: any thread may call any function, with no lock held.
class ChunkHolder {
 public:
  // Constant properties of a holder.
  struct Identity {
    // Stream that used the idle memory; without uid if the strategy serves all
    // streams of the place.
    Stream stream;
    // Layer that holds the memory; null if no chain contains it.
    const Allocator* layer = nullptr;
  };

  // A request for idle memory of another stream.
  struct LoanRequest {
    // Work allowed to obtain the memory.
    enum class Effort {
      kNone,   // no device call: only memory known to be free
      kAsk,    // record and query an event
      kOrder,  // make the borrower's stream wait for the lender's
    };

    std::size_t bytes;      // minimum size
    ChainStream& borrower;  // chain that will use the memory
    Effort effort = Effort::kNone;
  };

  // The idle loans that a borrower returns.
  enum class LoanRecall {
    kSpare,  // loans as for kIdle that are unlikely to be used again soon
    kIdle,   // loans that are no longer in use
    kWait,   // all idle loans, after a wait for their last use
  };

  // Idle memory of a holder, in bytes. For a strategy that maps pages, the
  // three sums include its free pages, and the last two its idle loans.
  struct IdleInfo {
    std::size_t bytes = 0;  // in idle chunks
    // Like `bytes`, plus the chunks in which only loans are in use.
    std::size_t bytes_with_lent = 0;
    // Upper bound of the bytes that the system gains when all idle chunks are
    // released: each chunk counts in whole steps of kSystemStepBytes.
    std::size_t system_bytes = 0;
    // The smallest idle chunk of at least the requested bytes, and the largest
    // idle chunk; 0: none.
    std::size_t best_fit = 0;
    std::size_t largest = 0;
  };

  explicit ChunkHolder(const Identity& identity) : identity_(identity) {}
  ChunkHolder(const ChunkHolder&) = delete;
  ChunkHolder& operator=(const ChunkHolder&) = delete;
  virtual ~ChunkHolder() = default;

  const Identity& identity() const { return identity_; }

  // Returns the idle memory. If `fit_bytes` is 0, does not search for best_fit
  // and largest.
  //
  // Cost: one lock of the strategy.
  virtual IdleInfo Idle(std::size_t fit_bytes) const noexcept = 0;
  // True if the work that used the idle memory has completed. Never waits.
  virtual bool IdleIsDone() noexcept = 0;

  // The next four functions release idle memory. Each returns the bytes
  // released; by default it releases nothing.
  //
  // Releases the smallest idle chunk of at least `bytes` to the system, after a
  // wait for the work that used it.
  virtual std::size_t GiveBackBestFit(std::size_t /*bytes*/) noexcept {
    return 0;
  }
  // Like GiveBackBestFit, but offers the chunk to the ChunkPool, for another
  // stream. No wait.
  virtual std::size_t OfferIdle(std::size_t /*bytes*/) noexcept { return 0; }
  // Releases idle chunks of at least `least_bytes` to the system if their work
  // has completed, until their sum is `bytes`. No wait. Strategies that lend
  // release the largest first.
  virtual std::size_t GiveBackDone(std::size_t /*bytes*/,
                                   std::size_t /*least_bytes*/) noexcept {
    return 0;
  }
  // Releases all idle memory to the system, after a wait for the work. First
  // takes back memory that it has lent and that is idle.
  virtual std::size_t GiveBackAll() noexcept { return 0; }

  // Announces that `stream` is about to be destroyed. If it is the stream of
  // the holder, the holder gives up all idle memory. It does not wait if the
  // stream has a timeline. Memory that work may still use is offered to the
  // ChunkPool. Loans stay until they are recalled. Holders that heed the end of
  // another stream are notified of it, even after their chain has ended.
  virtual void StreamEnds(Stream /*stream*/) noexcept {}
  // Appends the blocks of the holder, as AllocatorVisitor::VisitBlocks lists
  // them.
  //
  // Errors: std::bad_alloc.
  virtual void AppendBlocks(std::vector<BlockInfo>& /*blocks*/) const {}

  // For lenders: size of the smallest block of at least `bytes` that could be
  // lent after its last use completes; 0: none.
  virtual std::size_t SmallestLendable(std::size_t /*bytes*/) const noexcept {
    return 0;
  }
  // Lends an idle chunk of at most a quarter more than the requested bytes, or
  // a block of exactly those bytes. For memory that a driver pools
  // (Loans::FetchKept), transfers a block of exactly those bytes for good. The
  // last use of the result is ordered before all work that the borrower submits
  // later. If the holder has no such memory, returns null and changes nothing.
  virtual Allocation* Lend(const LoanRequest& /*request*/) noexcept {
    return nullptr;
  }
  // Takes back a block that Lend() returned. All its uses have completed.
  virtual void TakeBack(Allocation* /*loan*/) noexcept {}

  // For borrowers: returns idle chunks that are loans to their lenders. Returns
  // their bytes.
  virtual std::size_t ReturnLoans(LoanRecall /*which*/) noexcept { return 0; }
  // True if the holder can be destroyed: no loans, no exported memory, and, if
  // `end` is kWhenDone, no pages that work may still use. After that it lends
  // nothing. False: call again later.
  enum class End : std::uint8_t {
    kWhenDone,  // the destructor never waits for work
    kNow,       // it waits, and releases the pages even if the wait fails
  };
  virtual bool EndLending(End /*end*/) noexcept { return true; }

 private:
  friend class Loans;

  const Identity identity_;
  // Link of the retired holders of Loans, guarded by its lock.
  std::unique_ptr<ChunkHolder> next_retired_;
};

}  // namespace strata

#endif  // STRATA_ALLOCATION_CHUNKS_CHUNK_HOLDER_H_
