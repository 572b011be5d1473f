#ifndef STRATA_ALLOCATION_CHUNK_HOLDER_H_
#define STRATA_ALLOCATION_CHUNK_HOLDER_H_

#include <cstddef>
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

// A wish for memory that another stream has left over.
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

// A strategy as the ChunkPool of its place sees it: somebody who keeps idle
// chunks and can part with them.
//
// Model: besides idle chunks, a holder may lend a free block. The borrower has
//   it as a chunk from the pool; to the lender it is a block in use until it
//   comes back by TakeBack, when the borrower frees the chunk.
// Threads: every function from any thread, with no lock held.
class ChunkHolder {
 public:
  ChunkHolder() = default;
  ChunkHolder(const ChunkHolder&) = delete;
  ChunkHolder& operator=(const ChunkHolder&) = delete;
  virtual ~ChunkHolder() = default;

  // The stream whose work used the idle chunks; a Stream without uid if the
  // strategy serves all streams of the place.
  virtual Stream holder_stream() const noexcept = 0;
  // Bytes in idle chunks.
  virtual std::size_t IdleBytes() const noexcept = 0;
  // The same, with the chunks in which only loans are in use.
  virtual std::size_t IdleChunkBytes() const noexcept { return IdleBytes(); }
  // An upper bound on what the system has more once they are all given back:
  // each chunk counts in whole steps of kSystemStepBytes.
  virtual std::size_t IdleSystemBytes() const noexcept = 0;
  // The size of the smallest idle chunk of at least `bytes`; 0: none.
  virtual std::size_t SmallestIdle(std::size_t bytes) const noexcept = 0;
  virtual std::size_t LargestIdle() const noexcept = 0;
  // Whether the work that used the idle chunks is done. Never waits.
  virtual bool IdleIsDone() noexcept = 0;

  // Gives the smallest idle chunk of at least `bytes` to the system, after the
  // work that used it; returns its bytes, 0 if there is none any more.
  virtual std::size_t GiveBack(std::size_t bytes) noexcept = 0;
  // Gives idle chunks of at least `least` bytes to the system, the largest
  // first, until they are `bytes` together, after the work that used them;
  // returns their bytes.
  virtual std::size_t GiveBackLargest(std::size_t bytes,
                                      std::size_t least) noexcept;
  // As GiveBack, but to the ChunkPool, for another stream.
  virtual std::size_t OfferIdle(std::size_t bytes) noexcept = 0;
  // Parts for good with a freed block of just `bytes` that it keeps of the
  // driver's memory and whose last use is over. Null if there is none; and
  // there may be one all the same, as nobody is waited for.
  virtual Block* PartWith(std::size_t /*bytes*/) noexcept { return nullptr; }
  // Gives all idle chunks to the system; returns their bytes.
  virtual std::size_t GiveBackAll() noexcept = 0;
  // GiveBackAll of a holder from which nobody allocates any more; the others
  // give nothing and return 0.
  virtual std::size_t GiveBackEnded() noexcept { return 0; }
  // Gives idle chunks to the system, until they are `bytes` together, if the
  // work that used them is done; returns their bytes. Waits for nothing.
  virtual std::size_t GiveBackDone(std::size_t /*bytes*/) noexcept { return 0; }
  // Parts with what is idle, as its stream is about to go. Waits for nothing,
  // if the stream has a timeline: what work may still use goes to the
  // ChunkPool, and loans stay until they are recalled.
  virtual void GiveUpIdle() noexcept {}
  // Another stream than its own is about to go, also after its chain has ended,
  // while blocks of it wait for something.
  virtual void OtherStreamEnds(Stream /*stream*/) noexcept {}

  // The size of the smallest block of at least `bytes` that could be lent once
  // its last use is over; 0: none.
  virtual std::size_t SmallestLendable(std::size_t /*bytes*/) const noexcept {
    return 0;
  }
  // An idle chunk of at most a quarter more than the bytes, or a block of just
  // those bytes; null, and nothing has changed, if there is none whose last use
  // comes before what the borrower submits from now on.
  virtual Allocation* Lend(const LoanRequest& /*request*/) noexcept {
    return nullptr;
  }
  // What Lend gave, if it was a block. Every use is over.
  virtual void TakeBack(Allocation* /*loan*/) noexcept {}
  // Returns such idle chunks that are loans to their lenders; answers with
  // their bytes.
  virtual std::size_t ReturnLoans(LoanRecall /*which*/) noexcept { return 0; }
  // The layer that holds them, and its blocks, added to `blocks` as
  // AllocatorVisitor::VisitBlocks has them.
  //
  // Errors: std::bad_alloc.
  virtual const Allocator* holder_layer() const noexcept { return nullptr; }
  virtual void AppendBlocks(std::vector<BlockInfo>& /*blocks*/) const {}

  // Whether nothing is lent, or borrowed; from then on, nothing will be lent.
  virtual bool EndLending() noexcept { return true; }

 private:
  friend class ChunkPool;
  std::unique_ptr<ChunkHolder> next_retired_;  // by the lock of the pool
};

}  // namespace strata

#endif  // STRATA_ALLOCATION_CHUNK_HOLDER_H_
