#ifndef STRATA_STRATEGY_AUTO_GROWTH_LENT_BLOCKS_H_
#define STRATA_STRATEGY_AUTO_GROWTH_LENT_BLOCKS_H_

#include <cstddef>
#include <cstdint>
#include <memory>

#include "strata/allocation/chunks/loans.h"
#include "strata/allocation/streams/stream_timeline.h"
#include "strata/base/function_ref.h"
#include "strata/strategy/auto_growth/pooled_blocks.h"

namespace strata {

// The blocks of one AutoGrowthAllocator that other streams have borrowed, and
// the idle chunks that it has borrowed itself.
//
// Model: a lent block is in use here until its borrower returns it; the
//   borrower has it as a chunk. If a loan would use nearly all of an idle
//   chunk, the chunk itself leaves.
// Threads: as PooledBlocks.
class LentBlocks : public PooledBlocks {
 protected:
  // The first kSmallLoans requests of small blocks search for a loan before
  // they grow, and one more for each kFreesPerSmallLoan frees. Without a limit,
  // two streams that alternate would exchange the same small memory for ever.
  static constexpr std::uint64_t kSmallLoans = 64;
  static constexpr std::uint64_t kFreesPerSmallLoan = 16;

  using PooledBlocks::PooledBlocks;
  ~LentBlocks() = default;

  // Statistics of the strategy. Hold LockJoined().
  Stats StatsLocked() const;
  bool has_lent() const { return loans_ != 0; }
  // A block to lend that `is_fit` accepts; null if there is none.
  Block* FindToLend(std::size_t bytes,
                    FunctionRef<bool(const Block&)> is_fit) const;
  // Detaches the block or, if it is idle, its whole chunk. `emptied` receives
  // the chunk that is left over.
  Allocation* CarveLoan(Block* block, std::size_t bytes,
                        std::unique_ptr<Chunk>* emptied) noexcept;
  // Frees a block that its borrower returns.
  void FreeLoan(Block* block) noexcept;
  // Detaches spare idle loans of other streams, or more as `which` says. Linked
  // by `next`.
  Chunk* DetachLoans(ChunkHolder::LoanRecall which) noexcept;
  // Ends the epoch of the frees so far: they wait for an event of `timeline`.
  void CloseEpoch(StreamTimeline& timeline) noexcept;
  // Whether a small block may be borrowed instead of growing; counts the
  // request.
  bool MayBorrowSmall() noexcept;

  bool may_lend_ = false;
  std::size_t loans_ = 0;  // Blocks lent and not returned.
  std::size_t lent_bytes_ = 0;
  // Bytes of the chunks with loans; and the sum of the same chunks, each in
  // whole steps of kSystemStepBytes.
  std::size_t lending_bytes_ = 0;
  std::size_t lending_system_bytes_ = 0;
  // Value of free_count() at the last event recorded for loans; one event
  // serves a batch.
  std::uint64_t frees_at_event_ = std::uint64_t{0} - StreamTimeline::kBatch;

 private:
  bool IsLendable(const Block& block) const {
    return may_lend_ && !block.chunk->is_loan;
  }
  // Whether the stream is unlikely to need the idle loan again soon. A loan for
  // small blocks that was used since the last recall is not spare.
  bool IsSpare(const Chunk& loan) const {
    return loan.first->pool != static_cast<std::uint8_t>(Pool::kSmall) ||
           static_cast<std::uint16_t>(recalls_ - loan.recalls_before_use) > 1;
  }
  // Counts the first loan of a chunk (1), or the return of its last one (-1).
  void CountLending(const Chunk& chunk, int change) noexcept;

  // Requests that searched for a loan of small blocks.
  std::uint64_t small_loans_ = 0;
};

}  // namespace strata

#endif  // STRATA_STRATEGY_AUTO_GROWTH_LENT_BLOCKS_H_
