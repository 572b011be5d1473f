#include "strata/allocation/chunks/offered_chunks.h"

#include <iterator>
#include <mutex>
#include <new>
#include <utility>

#include "strata/allocation/streams/stream_timeline.h"
#include "strata/base/list_under_lock.h"
#include "strata/base/size.h"

namespace strata {

bool OfferedChunk::OrderBefore(ChainStream& user) const {
  if (timeline == nullptr) return AwaitLastUse();
  if (user.device() != nullptr && !user.retired() &&
      timeline->OrderBefore(tick, *user.device(), user.stream()) ==
          Status::kSuccess) {
    return true;
  }
  return AwaitLastUse();
}

bool OfferedChunk::AwaitLastUse() const {
  Status status = Status::kSuccess;
  if (timeline != nullptr) status = timeline->Await(tick);
  if (stream != nullptr) status = stream->Synchronize();
  return status == Status::kSuccess;
}

bool OfferedChunk::IsLastUseOver() const {
  if (stream != nullptr && !stream->IsDone()) return false;
  if (timeline == nullptr) return true;
  if (!timeline->IsDone(tick)) return timeline->Poll() >= tick;
  timeline->AcquireDone();
  return true;
}

bool OfferedChunks::Add(const OfferedChunk& offered) noexcept {
  std::vector<OfferedChunk> larger;  // made and destroyed without the lock
  try {
    while (true) {
      std::size_t places = 0;
      {
        const std::lock_guard<SpinLock> guard(lock_);
        places = chunks_.size() + taken_out_;
        if (places >= chunks_.capacity() && places < larger.capacity()) {
          larger.assign(std::make_move_iterator(chunks_.begin()),
                        std::make_move_iterator(chunks_.end()));
          chunks_.swap(larger);
        }
        if (places < chunks_.capacity()) {
          chunks_.push_back(offered);
          return true;
        }
      }
      larger.reserve(2 * places + 1);
    }
  } catch (const std::bad_alloc&) {
    return false;
  }
}

Allocation* OfferedChunks::TakeFor(std::size_t bytes,
                                   ChainStream& user) noexcept {
  // A wait inside a capture would end it.
  if (user.timeline() != nullptr && !user.timeline()->MayTouch()) {
    return nullptr;
  }
  const OfferedChunk best = TakeOut(bytes);
  if (best.chunk == nullptr) return nullptr;
  if (!best.OrderBefore(user)) {
    // The order is not proven: the chunk stays offered.
    PutBack(best);
    return nullptr;
  }
  GiveUpPlace();
  return best.chunk;
}

std::size_t OfferedChunks::GiveDone(std::size_t bytes, Give give) noexcept {
  std::size_t given = 0;
  for (std::size_t count = size(); count != 0 && given < bytes; --count) {
    const OfferedChunk offered = TakeOldestOut();
    if (offered.chunk == nullptr) break;
    if (!offered.IsLastUseOver()) {
      PutBack(offered);
      continue;
    }
    GiveUpPlace();
    given += give(offered, /*is_over=*/true);
  }
  return given;
}

std::size_t OfferedChunks::GiveAll(bool all, Give give,
                                   bool& has_given) noexcept {
  std::size_t given = 0;
  for (std::size_t count = size(); count != 0; --count) {
    const OfferedChunk offered = TakeOldestOut();
    if (offered.chunk == nullptr) break;
    const bool is_over = offered.AwaitLastUse();
    if (!is_over && !all) {
      PutBack(offered);
      continue;
    }
    GiveUpPlace();
    has_given = true;
    given += give(offered, is_over);
  }
  return given;
}

std::size_t OfferedChunks::Bytes(std::size_t step) const noexcept {
  std::size_t bytes = 0;
  const std::lock_guard<SpinLock> guard(lock_);
  for (const OfferedChunk& offered : chunks_) {
    bytes += AlignUp(offered.chunk->size(), step);
  }
  return bytes;
}

void OfferedChunks::AppendBlocks(std::vector<BlockInfo>& blocks) const {
  const std::size_t before = blocks.size();
  ListUnderLock(
      lock_, [this] { return chunks_.size(); },
      [&](std::size_t count) { blocks.reserve(before + count); },
      [&] {
        for (const OfferedChunk& offered : chunks_) {
          blocks.push_back({offered.chunk->data(), offered.chunk->size(),
                            offered.chunk->base(), BlockState::kFree});
        }
      });
}

std::size_t OfferedChunks::size() const noexcept {
  const std::lock_guard<SpinLock> guard(lock_);
  return chunks_.size();
}

OfferedChunk OfferedChunks::TakeOutLocked(
    std::vector<OfferedChunk>::iterator found) noexcept {
  if (found == chunks_.end()) return OfferedChunk();
  OfferedChunk offered = std::move(*found);
  chunks_.erase(found);
  ++taken_out_;
  return offered;
}

OfferedChunk OfferedChunks::TakeOut(std::size_t bytes) noexcept {
  const std::lock_guard<SpinLock> guard(lock_);
  auto found = chunks_.end();
  for (auto i = chunks_.begin(); i != chunks_.end(); ++i) {
    const std::size_t size = i->chunk->size();
    if (size < bytes || size - bytes > bytes) continue;
    if (found == chunks_.end() || size < found->chunk->size()) found = i;
  }
  return TakeOutLocked(found);
}

OfferedChunk OfferedChunks::TakeOldestOut() noexcept {
  const std::lock_guard<SpinLock> guard(lock_);
  return TakeOutLocked(chunks_.begin());
}

void OfferedChunks::PutBack(const OfferedChunk& offered) noexcept {
  const std::lock_guard<SpinLock> guard(lock_);
  --taken_out_;
  chunks_.push_back(offered);  // its place was reserved
}

void OfferedChunks::GiveUpPlace() noexcept {
  const std::lock_guard<SpinLock> guard(lock_);
  --taken_out_;
}

}  // namespace strata
