// Frees of cuda_malloc_async to the driver: after the streams that a block is
// marked with, and beside captures.

#include <algorithm>
#include <mutex>
#include <new>
#include <optional>
#include <utility>

#include "strata/allocation/block_flags.h"
#include "strata/allocation/streams/capture_gate.h"
#include "strata/allocation/streams/lost_use.h"
#include "strata/allocation/streams/stream_timeline.h"
#include "strata/base/log.h"
#include "strata/strategy/cuda_malloc_async/cuda_malloc_async_allocator.h"

namespace strata {
namespace {

DevicePtr AddressOf(const Block& block) {
  return reinterpret_cast<DevicePtr>(block.data);
}

}  // namespace

void CudaMallocAsyncAllocator::DoFree(Allocation* allocation) noexcept {
  Block* block = allocation->block();
  CheckLive(*block, name());
  if (IsUseLost(*block)) {
    KeepForEver(*block, name());
    return;
  }
  Marks::node_type marked;
  const bool may_keep = keeps_ && IsPlain(*block) && !IsAnnounced();
  if ((block->flags & kBlockMarkedBelow) != 0) {
    const std::lock_guard<std::mutex> guard(marks_mutex_);
    marked = marks_.extract(block);
    ++marked_frees_;
  }
  bool has_excess = false;
  {
    const std::lock_guard<ChainLock> guard(lock_);
    if (may_keep && GiveCached(block)) return;
    SetFlags(*block, 0);
    uses_.Uncount(*block);
    if (block->pool != kOwn) graph_bytes_ -= block->size;
    has_excess = LimitCache();
  }
  if (has_excess) Trim();
  FreeOrWait(block, std::move(marked));
  if (!IsAnnounced()) FreeWaiting();
}

bool CudaMallocAsyncAllocator::IsForbidden(const Mark* mark,
                                           bool has_stream) const noexcept {
  const auto may_touch = [this](const Stream& stream) {
    return gate_->MayTouch(*chain_stream().device(), stream);
  };
  return (has_stream && !may_touch(stream())) ||
         (mark != nullptr &&
          !std::all_of(mark->streams.begin(), mark->streams.end(), may_touch));
}

bool CudaMallocAsyncAllocator::TryFree(Block* block, const Mark* mark,
                                       bool may_wait) noexcept {
  const CallGate::Pass pass(stream_gate_);
  if (pass && !may_wait && !CanNameStream()) return false;
  // Either no capture begins during the free, or the thread is in relaxed mode
  // and checks for captures.
  std::optional<CaptureGate::Calm> calm;
  std::optional<CaptureGate::RelaxedScope> relaxed;
  if (gate_ != nullptr && !calm.emplace(*gate_)) {
    relaxed.emplace(*chain_stream().device());
    if (!*relaxed || IsForbidden(mark, pass && !chain_stream().retired())) {
      return false;
    }
  }
  if (FreeWith(*block, mark)) {
    Finish(block);
    return true;
  }
  // A stream of the block may be capturing by now.
  if (relaxed) return false;
  Keep(block);
  return true;
}

void CudaMallocAsyncAllocator::FreeOrWait(Block* block,
                                          Marks::node_type marked) noexcept {
  const bool is_marked = !marked.empty();
  if (!TryFree(block, is_marked ? &marked.mapped() : nullptr)) {
    Wait(block, std::move(marked));
  }
  if (is_marked) EndMarkedFree();
}

void CudaMallocAsyncAllocator::EndMarkedFree() noexcept {
  if (--marked_frees_ == 0) marked_frees_.notify_all();
}

void CudaMallocAsyncAllocator::Wait(Block* block,
                                    Marks::node_type marked) noexcept {
  try {
    if (marked.empty()) {
      Marks unmarked;
      unmarked[block].block = block;
      marked = unmarked.extract(block);
    }
    const std::lock_guard<std::mutex> guard(marks_mutex_);
    waiting_marks_.insert(std::move(marked));
    ++waiting_;
    waiting_bytes_ += block->size;
  } catch (const std::bad_alloc&) {
    Keep(block);
  }
}

void CudaMallocAsyncAllocator::FreeWaiting(bool may_wait) noexcept {
  if (waiting_.load() == 0 || (!may_wait && !CanNameStream())) return;
  Marks taken;
  {
    const std::lock_guard<std::mutex> guard(marks_mutex_);
    std::swap(taken, waiting_marks_);
    waiting_ = 0;
    waiting_bytes_ = 0;
    ++marked_frees_;
  }
  while (!taken.empty()) {
    Marks::node_type node = taken.extract(taken.begin());
    const Mark& mark = node.mapped();
    Block* const block = mark.block;
    if (!TryFree(block, mark.streams.empty() ? nullptr : &mark, may_wait)) {
      Wait(block, std::move(node));
    }
  }
  EndMarkedFree();
}

void CudaMallocAsyncAllocator::Keep(Block* block) noexcept {
  // Its marks are dropped: it is freed after a wait for the whole device.
  STRATA_LOG(Error) << "cuda_malloc_async: " << block->size << " bytes at "
                    << static_cast<void*>(block->data)
                    << " stay reserved until memory is given back";
  const std::lock_guard<ChainLock> guard(lock_);
  kept_.Push(block);
  unfreed_bytes_ += block->size;
}

bool CudaMallocAsyncAllocator::FreeWith(const Block& block,
                                        const Mark* mark) noexcept {
  const CallGate::Pass pass(stream_gate_);
  bool has_stream = pass && !chain_stream().retired() && !IsLost();
  const Stream own = stream();
  const DevicePtr ptr = AddressOf(block);
  if (mark == nullptr && has_stream && CanNameStream()) {
    if (driver_->Free(ptr, block.size, own)) return true;
    // The stream may be capturing. Another stream that waits for it would join
    // the capture.
    if (IsAnnounced()) return false;
    // The stream may have ended.
    if (chain_stream().timeline() != nullptr) {
      chain_stream().timeline()->SeeIdle();
    }
    has_stream = !IsLost();
  }
  if (IsLost() && !AwaitLost()) return false;
  Stream owner = own;
  if (!has_stream) {
    const std::lock_guard<std::mutex> guard(marks_mutex_);
    owner = stand_in_;
  }
  const std::vector<Stream> nobody;
  return driver_->FreeAside(ptr, block.size,
                            mark != nullptr ? mark->streams : nobody,
                            owner.uid != 0 ? &owner : nullptr);
}

bool CudaMallocAsyncAllocator::IsLost() const noexcept {
  return chain_stream().timeline() != nullptr &&
         chain_stream().timeline()->lost();
}

bool CudaMallocAsyncAllocator::AwaitLost() noexcept {
  StreamTimeline& timeline = *chain_stream().timeline();
  return timeline.Await(timeline.NoteOnly()) == Status::kSuccess;
}

void CudaMallocAsyncAllocator::Finish(Block* block) noexcept {
  pool().budget().Unclaim(block->size);
  RecordSlab::Instance().Give(block);
}

void CudaMallocAsyncAllocator::FreeKept() noexcept {
  RecordSlab::List kept;
  {
    const std::lock_guard<ChainLock> guard(lock_);
    std::swap(kept, kept_);
  }
  while (Block* block = kept.Pop()) {
    if (driver_->FreeAfterAll(AddressOf(*block), block->size)) {
      unfreed_bytes_ -= block->size;
      Finish(block);
      continue;
    }
    const std::lock_guard<ChainLock> guard(lock_);
    kept_.Push(block);
  }
}

bool CudaMallocAsyncAllocator::RecordStream(Allocation* allocation,
                                            Stream stream) noexcept {
  Block* block = allocation->block();
  const Stream own = this->stream();
  if (stream.uid == 0 || stream == own || stream.device != own.device ||
      HasFlag(*block, kBlockZeroSize)) {
    return false;
  }
  try {
    HeedEnd(stream);
    const std::lock_guard<std::mutex> guard(marks_mutex_);
    Mark& mark = marks_[block];
    mark.block = block;
    std::vector<Stream>& streams = mark.streams;
    // Set from here on, so that the free of the block always removes the mark.
    AddFlag(*block, kBlockMarkedBelow);
    if (std::find(streams.begin(), streams.end(), stream) == streams.end()) {
      streams.push_back(stream);
    }
    return true;
  } catch (const std::bad_alloc&) {
    return !AwaitOrLoseUse(*block, *chain_stream().device(), stream,
                           gate_.get(), name());
  }
}

void CudaMallocAsyncAllocator::HeedEnd(const Stream& stream) {
  // Through the pool, because the chain may outlive its front.
  if (heeded_.load(std::memory_order_relaxed) == stream.uid) return;
  pool().holders().HeedEnd(stream, *this);
  heeded_.store(stream.uid, std::memory_order_relaxed);
}

void CudaMallocAsyncAllocator::EraseStream(Allocation* allocation,
                                           Stream stream) noexcept {
  Block* block = allocation->block();
  const std::lock_guard<std::mutex> guard(marks_mutex_);
  const auto found = marks_.find(block);
  if (found == marks_.end()) return;
  std::vector<Stream>& streams = found->second.streams;
  std::erase(streams, stream);
  if (!streams.empty()) return;
  marks_.erase(found);
  RemoveFlag(*block, kBlockMarkedBelow);
}

void CudaMallocAsyncAllocator::StreamDestroyed(Stream stream) noexcept {
  if (stream.uid == 0 || stream.device != this->stream().device) return;
  heeded_ = 0;
  const bool is_own = stream == this->stream();
  if (is_own) {
    CloseCache();
    FreeWaiting();
  }
  Replace(stream, is_own && driver_->is_open());
  if (is_own) stream_gate_.Close();
  do {
    // Frees that read the stream from a mark still use it.
    for (int frees = marked_frees_; frees != 0; frees = marked_frees_) {
      marked_frees_.wait(frees);
    }
    // A free that captures forbade has restored its mark.
    Replace(stream, /*is_user=*/false);
  } while (IsKnown(stream));
}

bool CudaMallocAsyncAllocator::IsNamed(const Marks& marks,
                                       const Stream& stream) {
  return std::any_of(marks.begin(), marks.end(), [&](const auto& entry) {
    return entry.second.IsOf(stream);
  });
}

bool CudaMallocAsyncAllocator::IsKnown(const Stream& stream) noexcept {
  const std::lock_guard<std::mutex> guard(marks_mutex_);
  return marked_frees_ != 0 || IsNamed(marks_, stream) ||
         IsNamed(waiting_marks_, stream);
}

void CudaMallocAsyncAllocator::Replace(const Stream& stream,
                                       bool is_user) noexcept {
  {
    const std::lock_guard<std::mutex> guard(marks_mutex_);
    is_user =
        is_user || IsNamed(marks_, stream) || IsNamed(waiting_marks_, stream);
  }
  if (!is_user) return;
  // All work of the stream has been submitted, so the stand-in is ordered after
  // it.
  const bool is_lost = IsLost() && stream == this->stream();
  std::optional<Stream> stand_in;
  if (!is_lost) stand_in = driver_->StandIn(stream);
  const bool is_ordered = is_lost ? AwaitLost() : stand_in.has_value();
  STRATA_LOG_IF(Error, !is_ordered)
      << "cuda_malloc_async: work in stream " << stream.uid
      << ", which is about to go, could not be waited for";
  const bool is_done = !stand_in || stand_in->uid == 0;
  const std::lock_guard<std::mutex> guard(marks_mutex_);
  if (stream == this->stream() && !is_done) stand_in_ = *stand_in;
  for (Marks* marks : {&marks_, &waiting_marks_}) {
    for (auto& [block, mark] : *marks) {
      if (is_done) {
        std::erase(mark.streams, stream);
      } else {
        std::replace(mark.streams.begin(), mark.streams.end(), stream,
                     *stand_in);
      }
    }
  }
}

}  // namespace strata
