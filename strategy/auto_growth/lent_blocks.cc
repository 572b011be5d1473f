#include "strata/strategy/auto_growth/lent_blocks.h"

#include "strata/base/size.h"

namespace strata {

Stats LentBlocks::StatsLocked() const {
  Stats stats;
  stats.cache_hits = takes_ - untold_takes_ + cache_.hits();
  stats.cache_misses = misses_;
  stats.splits = blocks_.splits();
  stats.coalesces = blocks_.coalesces();
  // The borrower counts the bytes that are lent.
  stats.reserved_bytes = blocks_.chunk_bytes() - lent_bytes_;
  stats.in_use_bytes = taken_bytes_ - lent_bytes_;
  stats.free_blocks = free_blocks();
  stats.largest_free_bytes = LargestFree();
  stats.chunks = blocks_.chunk_count();
  stats.idle_bytes = idle_.bytes();
  return stats;
}

void LentBlocks::CloseEpoch(StreamTimeline& timeline) noexcept {
  if (epochs_.is_spent()) {
    const FreeEpochs::Epoch over = epochs_.over();
    const FreeEpochs::Epoch pending = epochs_.Restart();
    for (Chunk* chunk = blocks_.first_chunk(); chunk != nullptr;
         chunk = chunk->next) {
      for (Block* block = chunk->first; block != nullptr; block = block->next) {
        const bool has_epoch =
            block->is_free || block->pool == BlockList::kRetiredPool;
        if (!has_epoch) continue;
        block->offset_units =
            block->offset_units <= over ? FreeEpochs::kNone : pending;
      }
    }
  }
  epochs_.Close(timeline);
}

Block* LentBlocks::FindToLend(std::size_t bytes,
                              FunctionRef<bool(const Block&)> is_fit) const {
  const auto is_smaller = [](const Block* block, const Block* than) {
    return block != nullptr && (than == nullptr || block->size < than->size);
  };
  Block* best = nullptr;
  Block* best_idle = nullptr;
  for (const FreeIndex& blocks : index_) {
    // Idle chunks last: the system can only reclaim them while they are whole.
    Block* idle = nullptr;
    Block* block = blocks.FindBest(bytes, [&](Block& b) {
      if (!IsLendable(b) || !is_fit(b)) return false;
      if (!BlockList::IsWholeChunk(&b)) return true;
      const bool may_cut = policy_.maps_pages()
                               ? AutoGrowthPolicy::MayCutLoan(b.size, bytes)
                               : MayCut(b, bytes);
      if (!may_cut) return false;
      if (idle == nullptr || FreeIndex::IsBetter(&b, idle)) idle = &b;
      return false;
    });
    if (is_smaller(block, best)) best = block;
    if (is_smaller(idle, best_idle)) best_idle = idle;
  }
  for (const OpenBlocks& blocks : open_) {
    blocks.ForEach([&](Block& block) {
      if (block.size < bytes || !IsLendable(block) || !is_fit(block)) return;
      if (is_smaller(&block, best)) best = &block;
    });
  }
  // If there is no other block, the search has visited all idle chunks.
  return best != nullptr ? best : best_idle;
}

void LentBlocks::CountLending(const Chunk& chunk, int change) noexcept {
  // A range never becomes an idle chunk.
  if (chunk.is_range) return;
  const std::size_t bytes = chunk.memory->size();
  const std::size_t system_bytes = AlignUp(bytes, kSystemStepBytes);
  lending_bytes_ += change > 0 ? bytes : -bytes;
  lending_system_bytes_ += change > 0 ? system_bytes : -system_bytes;
}

Allocation* LentBlocks::CarveLoan(Block* block, std::size_t bytes,
                                  std::unique_ptr<Chunk>* emptied) noexcept {
  Chunk* chunk = block->chunk;
  if (BlockList::IsWholeChunk(block) && block->size - bytes <= bytes / 4) {
    Detach(chunk);
    emptied->reset(chunk);
    return chunk->memory;
  }
  block = Carve(block, bytes);
  if (block == nullptr) return nullptr;
  ++untold_takes_;
  if (chunk->loans++ == 0) CountLending(*chunk, 1);
  block->flags = kBlockLive | kBlockLent;
  ++loans_;
  lent_bytes_ += block->size;
  return block->allocation();
}

Chunk* LentBlocks::DetachLoans(ChunkHolder::LoanRecall which) noexcept {
  using LoanRecall = ChunkHolder::LoanRecall;
  const auto is_meant = [&](const Chunk& loan) {
    if (which == LoanRecall::kWait) return true;
    if (which == LoanRecall::kSpare && !IsSpare(loan)) return false;
    return epochs_.IsOver(loan.first->offset_units);
  };
  Chunk* loans = nullptr;
  Chunk* next = nullptr;
  for (Chunk* chunk = idle_loans_.first(); chunk != nullptr; chunk = next) {
    next = chunk->idle_next;
    if (!is_meant(*chunk)) continue;
    Detach(chunk);
    chunk->next = loans;
    loans = chunk;
  }
  return loans;
}

bool LentBlocks::MayBorrowSmall() noexcept {
  const std::uint64_t allowed = kSmallLoans + free_count() / kFreesPerSmallLoan;
  if (small_loans_ >= allowed) return false;
  ++small_loans_;
  return true;
}

void LentBlocks::FreeLoan(Block* block) noexcept {
  if (--block->chunk->loans == 0) CountLending(*block->chunk, -1);
  --loans_;
  lent_bytes_ -= block->size;
  ++taken_back_;
  Insert(block, FreeEpochs::kNone);
  records_.Shed();
}

}  // namespace strata
