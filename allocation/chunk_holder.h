#ifndef STRATA_ALLOCATION_CHUNK_HOLDER_H_
#define STRATA_ALLOCATION_CHUNK_HOLDER_H_

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

// Memory moves between the system and us in steps of this size on every known
// device (cuda_semantics.md D5, V3), so a chunk may free up to one step more
// than its size.
inline constexpr std::size_t kSystemStepBytes = std::size_t{2} << 20;

// A request for memory that another stream has left over.
struct LoanRequest {
  // What may be done to have it.
  enum class Effort {
    kNone,   // no device call: what is known to be free
    kAsk,    // an event is recorded and asked for
    kOrder,  // the borrower's stream is made to wait for the lender's
  };

  std::size_t bytes;      // at least
  ChainStream& borrower;  // whose work will use it
  Effort effort = Effort::kNone;
};

// Which of its idle loans a borrower returns.
enum class LoanRecall {
  kSpare,  // of those of kIdle what it is not likely to need again soon
  kIdle,   // those whose last use is over
  kWait,   // all, after waiting for their last use
};

// The idle memory of a holder, in bytes. The chunks of a strategy that maps
// pages include its free pages in the three sums.
struct IdleInfo {
  std::size_t bytes = 0;  // in idle chunks
  // The same, with the chunks in which only loans are in use.
  std::size_t bytes_with_lent = 0;
  // An upper bound on the bytes that the system gains once all of them are
  // given back: each chunk counts in whole steps of kSystemStepBytes.
  std::size_t system_bytes = 0;
  // The smallest idle chunk of at least the bytes asked for, and the largest
  // idle chunk; 0: none.
  std::size_t best_fit = 0;
  std::size_t largest = 0;
};

// A request to a holder to give up idle memory.
struct GiveBackRequest {
  enum class Kind : std::uint8_t {
    // The smallest idle chunk of at least `bytes`, to the system, after a wait
    // for the work that used it.
    kBestFit,
    // As kBestFit, but the ChunkPool gets the chunk, for another stream. Waits
    // for nothing.
    kOffer,
    // Idle chunks of at least `least_bytes`, the largest first, until they are
    // `bytes` together; to the system, after a wait for the work.
    kLargestFirst,
    // Idle memory until it is `bytes`, to the system, if the work that used it
    // is done. Waits for nothing.
    kDone,
    // All idle memory, to the system, after a wait for the work; loans that
    // lie idle with their borrowers return first.
    kAll,
  };

  Kind kind = Kind::kAll;
  std::size_t bytes = SIZE_MAX;
  std::size_t least_bytes = 1;
};

// A strategy as the ChunkPool of its place sees it: it keeps idle memory, and
// gives it up on request.
//
// Model: besides idle chunks, a holder may lend a free block. The borrower has
//   it as a chunk from the pool; to the lender it is a block in use until it
//   comes back by TakeBack, when the borrower frees the chunk.
// Threads: every function from any thread, with no lock held.
class ChunkHolder {
 public:
  // Constant facts of a holder.
  struct Identity {
    // The stream whose work used the idle memory; one without uid if the
    // strategy serves all streams of the place.
    Stream stream;
    // The layer that holds the memory; null if no chain contains it.
    const Allocator* layer = nullptr;
    // Nobody allocates from it any more.
    bool has_ended = false;
  };

  explicit ChunkHolder(const Identity& identity) : identity_(identity) {}
  ChunkHolder(const ChunkHolder&) = delete;
  ChunkHolder& operator=(const ChunkHolder&) = delete;
  virtual ~ChunkHolder() = default;

  const Identity& identity() const { return identity_; }

  // `fit_bytes` 0: without best_fit and largest, which cost a search.
  //
  // Cost: one lock of the strategy.
  virtual IdleInfo Idle(std::size_t fit_bytes) const noexcept = 0;
  // Whether the work that used the idle memory is done. Never waits.
  virtual bool IdleIsDone() noexcept = 0;
  // Returns the bytes that left. A holder that cannot serve a kind returns 0.
  virtual std::size_t GiveBack(const GiveBackRequest& request) noexcept = 0;
  // `stream` is about to go. If it is the stream of the holder: parts with all
  // idle memory, and waits for nothing if the stream has a timeline. Memory
  // that work may still use goes to the ChunkPool, and loans stay until they
  // are recalled. Other streams are told to holders that heed their ends, also
  // after the chain has ended.
  virtual void StreamEnds(Stream /*stream*/) noexcept {}
  // Adds the blocks of the holder as AllocatorVisitor::VisitBlocks lists them.
  //
  // Errors: std::bad_alloc.
  virtual void AppendBlocks(std::vector<BlockInfo>& /*blocks*/) const {}

  // Loans out. The size of the smallest block of at least `bytes` that could
  // be lent once its last use is over; 0: none.
  virtual std::size_t SmallestLendable(std::size_t /*bytes*/) const noexcept {
    return 0;
  }
  // An idle chunk of at most a quarter more than the bytes, or a block of just
  // those bytes. Of memory that a driver pools (Loans::FetchKept): a block of
  // just those bytes, for good. The last use of the result comes before all
  // work that the borrower submits later. Null, and nothing has changed, if
  // the holder has no such memory.
  virtual Allocation* Lend(const LoanRequest& /*request*/) noexcept {
    return nullptr;
  }
  // Takes a block that Lend returned. Every use is over.
  virtual void TakeBack(Allocation* /*loan*/) noexcept {}

  // Loans in: returns idle chunks that are loans to their lenders; answers with
  // their bytes.
  virtual std::size_t ReturnLoans(LoanRecall /*which*/) noexcept { return 0; }
  // Whether the holder can be destroyed: no loans, no exported memory, no pages
  // that work may still use. From then on it lends nothing. False: call later.
  virtual bool EndLending() noexcept { return true; }

 protected:
  // Serves kLargestFirst by requests of kBestFit.
  std::size_t GiveBackOneByOne(const GiveBackRequest& request) noexcept;

 private:
  friend class RetiredHolders;

  const Identity identity_;
  std::unique_ptr<ChunkHolder> next_retired_;  // by the lock of the list
};

}  // namespace strata

#endif  // STRATA_ALLOCATION_CHUNK_HOLDER_H_
