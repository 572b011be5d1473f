// Idle chunks of AutoGrowthAllocator: its functions as a ChunkHolder.

#include <memory>
#include <utility>

#include "strata/base/log.h"
#include "strata/strategy/auto_growth/auto_growth_allocator.h"

namespace strata {

Chunk* AutoGrowthAllocator::DetachSmallest(std::size_t bytes) noexcept {
  const auto joined = LockJoined();
  return Detach(idle_.Smallest(bytes));
}

std::size_t AutoGrowthAllocator::ReturnToSystem(Chunk* chunks) noexcept {
  return chunks != nullptr ? FreeChunks(chunks, AwaitStream()) : 0;
}

Status AutoGrowthAllocator::SynchronizeStream() noexcept {
  if (may_ask_stream()) return chain_stream().Synchronize();
  const CaptureGate::Calm calm(*chain_stream().timeline()->gate());
  return calm ? chain_stream().device()->Synchronize() : Status::kNotReady;
}

bool AutoGrowthAllocator::AwaitStream() noexcept {
  if (is_over_) return true;
  const Status status = SynchronizeStream();
  // kNotReady is no error: a capture was announced meanwhile.
  STRATA_LOG_IF(Error,
                status != Status::kSuccess && status != Status::kNotReady)
      << name() << ": cannot wait for stream " << stream().uid << " (" << status
      << "); its memory is kept until it can be waited for";
  if (status == Status::kSuccess && !may_ask_stream()) {
    // No chain submits work any more.
    const auto joined = LockJoined();
    epochs_.PassAll();
    is_over_ = true;
  }
  return status == Status::kSuccess;
}

std::size_t AutoGrowthAllocator::FreeChunks(Chunk* chunks,
                                            bool is_done) noexcept {
  std::size_t bytes = 0;
  while (chunks != nullptr) {
    const std::unique_ptr<Chunk> chunk(std::exchange(chunks, chunks->next));
    bytes += GiveToPool(chunk->memory, is_done);
  }
  return bytes;
}

ChunkHolder::IdleInfo AutoGrowthAllocator::Idle(
    std::size_t fit_bytes) const noexcept {
  const auto joined = LockJoined();
  IdleInfo idle;
  idle.bytes = idle_.bytes();
  idle.bytes_with_lent = idle_.bytes() + lending_bytes_;
  idle.system_bytes = idle_.system_bytes() + lending_system_bytes_;
  idle_.FillInSizes(fit_bytes, idle);
  return idle;
}

std::size_t AutoGrowthAllocator::GiveBackBestFit(std::size_t bytes) noexcept {
  return ReturnToSystem(DetachSmallest(bytes));
}

std::size_t AutoGrowthAllocator::GiveBackAll() noexcept {
  RecallLent(LoanRecall::kWait);
  return GiveBackIdle();
}

std::size_t AutoGrowthAllocator::GiveBackDone(
    std::size_t bytes, std::size_t least_bytes) noexcept {
  if (!IdleIsDone()) return 0;
  Chunk* chunks = nullptr;
  {
    const auto joined = LockJoined();
    chunks = DetachLargest(bytes, least_bytes);
  }
  // The stream may have reused and freed one of them before it was detached.
  return chunks != nullptr ? FreeChunks(chunks, IdleIsDone()) : 0;
}

std::size_t AutoGrowthAllocator::OfferIdle(std::size_t bytes) noexcept {
  // Memory freed during a capture of the stream is not usable by others until
  // the capture ends.
  const StreamTimeline* timeline = chain_stream().timeline();
  if (timeline != nullptr && !timeline->MayTouch()) return 0;
  const std::unique_ptr<Chunk> chunk(DetachSmallest(bytes));
  if (chunk == nullptr) return 0;
  const std::size_t offered = chunk->memory->size();
  pool().Offer(chunk->memory, chain_stream());
  return offered;
}

std::size_t AutoGrowthAllocator::GiveBackIdle(std::size_t bytes) noexcept {
  Chunk* chunks = nullptr;
  {
    const auto joined = LockJoined();
    chunks = DetachLargest(bytes, /*least=*/1);
  }
  return ReturnToSystem(chunks);
}

void AutoGrowthAllocator::StreamEnds(Stream stream) noexcept {
  if (stream == this->stream()) GiveUpIdle();
}

void AutoGrowthAllocator::GiveUpIdle() noexcept {
  StreamTimeline* const timeline = chain_stream().timeline();
  // A graph pool: its device is waited for.
  if (timeline == nullptr) {
    GiveBackIdle();
    return;
  }
  // Loans that may still be in use stay until they are recalled.
  ReturnLoans(LoanRecall::kIdle);
  const CaptureGate::Calm calm(*timeline->gate());
  const bool is_done = calm && IdleIsDone();
  if (is_done) RecallLent(LoanRecall::kIdle);
  Chunk* chunks = nullptr;
  {
    const auto joined = LockJoined();
    chunks = DetachLargest(SIZE_MAX, /*least=*/1);
  }
  FreeChunks(chunks, is_done);
}

}  // namespace strata
