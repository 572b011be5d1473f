#include "strata/allocation/chunks/offered_chunks.h"

#include <mutex>
#include <new>

#include "strata/allocation/streams/stream_timeline.h"
#include "strata/base/list_under_lock.h"
#include "strata/base/size.h"

namespace strata {

bool OfferedChunks::Entry::OrderBefore(ChainStream& user) const {
  if (timeline == nullptr) return AwaitLastUse();
  if (user.device() != nullptr && !user.retired() &&
      timeline->OrderBefore(tick, *user.device(), user.stream()) ==
          Status::kSuccess) {
    return true;
  }
  return AwaitLastUse();
}

bool OfferedChunks::Entry::AwaitLastUse() const {
  Status status = Status::kSuccess;
  if (timeline != nullptr) status = timeline->Await(tick);
  if (stream != nullptr) status = stream->Synchronize();
  return status == Status::kSuccess;
}

bool OfferedChunks::Entry::IsLastUseOver() const {
  if (stream != nullptr && !stream->IsDone()) return false;
  if (timeline == nullptr) return true;
  if (!timeline->IsDone(tick)) return timeline->Poll() >= tick;
  timeline->AcquireDone();
  return true;
}

bool OfferedChunks::Add(const Entry& offered) noexcept {
  try {
    List one{offered};
    Append(one);
    return true;
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
  List best = TakeOut(bytes);
  if (best.empty()) return nullptr;
  if (best.front().OrderBefore(user)) return best.front().chunk;
  // The order is not proven: the chunk stays offered.
  Append(best);
  return nullptr;
}

std::size_t OfferedChunks::GiveDone(std::size_t bytes, Give give) noexcept {
  std::size_t given = 0;
  for (std::size_t count = size(); count != 0 && given < bytes; --count) {
    List oldest = TakeOldestOut();
    if (oldest.empty()) break;
    if (oldest.front().IsLastUseOver()) {
      given += give(oldest.front(), /*is_over=*/true);
    } else {
      Append(oldest);
    }
  }
  return given;
}

std::size_t OfferedChunks::GiveAll(bool all, Give give,
                                   bool& has_given) noexcept {
  std::size_t given = 0;
  for (std::size_t count = size(); count != 0; --count) {
    List oldest = TakeOldestOut();
    if (oldest.empty()) break;
    const bool is_over = oldest.front().AwaitLastUse();
    if (is_over || all) {
      has_given = true;
      given += give(oldest.front(), is_over);
    } else {
      Append(oldest);
    }
  }
  return given;
}

std::size_t OfferedChunks::Bytes(std::size_t step) const noexcept {
  std::size_t bytes = 0;
  const std::lock_guard<SpinLock> guard(lock_);
  for (const Entry& offered : chunks_) {
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
        for (const Entry& offered : chunks_) {
          blocks.push_back({offered.chunk->data(), offered.chunk->size(),
                            offered.chunk->base(), BlockState::kFree});
        }
      });
}

std::size_t OfferedChunks::size() const noexcept {
  const std::lock_guard<SpinLock> guard(lock_);
  return chunks_.size();
}

OfferedChunks::List OfferedChunks::TakeOut(std::size_t bytes) noexcept {
  List best;
  const std::lock_guard<SpinLock> guard(lock_);
  auto found = chunks_.end();
  for (auto i = chunks_.begin(); i != chunks_.end(); ++i) {
    const std::size_t size = i->chunk->size();
    if (size < bytes || size - bytes > bytes) continue;
    if (found == chunks_.end() || size < found->chunk->size()) found = i;
  }
  if (found != chunks_.end()) best.splice(best.end(), chunks_, found);
  return best;
}

OfferedChunks::List OfferedChunks::TakeOldestOut() noexcept {
  List oldest;
  const std::lock_guard<SpinLock> guard(lock_);
  if (!chunks_.empty()) oldest.splice(oldest.end(), chunks_, chunks_.begin());
  return oldest;
}

void OfferedChunks::Append(List& one) noexcept {
  const std::lock_guard<SpinLock> guard(lock_);
  chunks_.splice(chunks_.end(), one);
}

}  // namespace strata
