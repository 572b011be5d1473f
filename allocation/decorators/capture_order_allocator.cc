#include "strata/allocation/decorators/capture_order_allocator.h"

#include <algorithm>
#include <iterator>
#include <new>
#include <unordered_set>
#include <utility>

#include "strata/allocation/block_flags.h"
#include "strata/allocation/streams/lost_use.h"

namespace strata {
bool AllPrecede(Device& device, const std::vector<GraphNode>& earlier,
                const std::vector<GraphNode>& later) noexcept try {
  std::vector<GraphNode> open = later;
  std::unordered_set<void*> missing;
  for (const GraphNode& node : earlier) missing.insert(node.value);
  std::unordered_set<void*> seen;
  std::vector<GraphNode> before;
  while (!missing.empty() && !open.empty()) {
    const GraphNode node = open.back();
    open.pop_back();
    if (!seen.insert(node.value).second) continue;
    missing.erase(node.value);
    before.clear();
    if (device.GraphNodePredecessors(node, &before) != Status::kSuccess) {
      return false;
    }
    open.insert(open.end(), before.begin(), before.end());
  }
  return missing.empty();
} catch (const std::bad_alloc&) {
  return false;
}

bool CaptureFrontier(Device& device, const Stream& stream,
                     std::vector<GraphNode>* nodes, bool* unknown) noexcept {
  CaptureInfo info;
  const Status status = device.StreamCaptureInfo(stream, &info);
  // The legacy stream never captures (cuda_semantics.md C12).
  if (status != Status::kSuccess && status != Status::kStreamCaptureImplicit &&
      unknown != nullptr) {
    *unknown = true;
  }
  if (status != Status::kSuccess || info.status != CaptureStatus::kActive) {
    return false;
  }
  *nodes = std::move(info.dependencies);
  return true;
}

CaptureOrderAllocator::CaptureOrderAllocator(
    std::shared_ptr<Allocator> underlying, std::shared_ptr<ChainStream> own)
    : Decorator(std::move(underlying)), own_(std::move(own)) {}

CaptureOrderAllocator::~CaptureOrderAllocator() { CaptureEnded(); }

bool CaptureOrderAllocator::RecordStream(Allocation* allocation,
                                         Stream stream) noexcept {
  if (stream.uid == 0 || stream == own_->stream()) return false;
  Block* block = allocation->block();
  try {
    const std::lock_guard<std::mutex> guard(mutex_);
    auto found = by_block_.find(block);
    if (found == by_block_.end()) {
      List made;
      made.push_back({allocation, {}, {}, false});
      found = by_block_.emplace(block, made.begin()).first;
      marked_.splice(marked_.end(), made);
      // Another layer may have set the flag too.
      AddFlag(*block, kBlockMarked);
    }
    std::vector<Stream>& streams = found->second->streams;
    if (std::find(streams.begin(), streams.end(), stream) == streams.end()) {
      streams.push_back(stream);
    }
    return true;
  } catch (const std::bad_alloc&) {
    LoseUse(*block);
    return true;
  }
}

void CaptureOrderAllocator::EraseStream(Allocation* allocation,
                                        Stream stream) noexcept {
  Block* block = allocation->block();
  if (!HasFlag(*block, kBlockMarked)) return;
  const std::lock_guard<std::mutex> guard(mutex_);
  const auto found = by_block_.find(block);
  if (found == by_block_.end()) return;
  std::erase(found->second->streams, stream);
}

void CaptureOrderAllocator::StreamDestroyed(Stream stream) noexcept {
  underlying()->StreamDestroyed(stream);
  const auto names = [&](const Marked& mark) {
    return std::find(mark.streams.begin(), mark.streams.end(), stream) !=
           mark.streams.end();
  };
  bool is_named = false;
  {
    const std::lock_guard<std::mutex> guard(mutex_);
    is_named = std::any_of(marked_.begin(), marked_.end(), names);
  }
  if (is_named) NoteEnd(stream);
  for (int asking = asking_; asking != 0; asking = asking_) {
    asking_.wait(asking);
  }
}

void CaptureOrderAllocator::NoteEnd(const Stream& stream) noexcept {
  std::vector<GraphNode> nodes;
  bool unknown = false;
  CaptureFrontier(*own_->device(), stream, &nodes, &unknown);
  const std::lock_guard<std::mutex> guard(mutex_);
  for (Marked& mark : marked_) {
    if (std::erase(mark.streams, stream) == 0) continue;
    try {
      mark.frontier.insert(mark.frontier.end(), nodes.begin(), nodes.end());
    } catch (const std::bad_alloc&) {
      mark.unknown = true;
    }
    mark.unknown = mark.unknown || unknown;
  }
}

void CaptureOrderAllocator::DoFree(Allocation* allocation) noexcept {
  Block* block = allocation->block();
  if (IsUseLost(*block)) {
    KeepForEver(*block, name());
    return;
  }
  if ((block->flags & kBlockMarked) == 0) {
    underlying()->DoFree(allocation);
    return;
  }
  List freed;
  std::uint64_t ended = 0;
  {
    const std::lock_guard<std::mutex> guard(mutex_);
    ended = ended_;
    const auto found = by_block_.find(block);
    if (found != by_block_.end()) {
      freed.splice(freed.begin(), marked_, found->second);
      by_block_.erase(found);
      ++asking_;
    }
    RemoveFlag(*block, kBlockMarked);
  }
  if (freed.empty()) {
    underlying()->DoFree(allocation);
    return;
  }
  Marked& mark = freed.front();
  Device& device = *own_->device();
  try {
    std::vector<GraphNode> nodes;
    for (const Stream& stream : mark.streams) {
      // A stream that is not capturing has no nodes in the graph.
      if (!CaptureFrontier(device, stream, &nodes, &mark.unknown)) continue;
      mark.frontier.insert(mark.frontier.end(), nodes.begin(), nodes.end());
    }
  } catch (const std::bad_alloc&) {
    mark.unknown = true;
  }
  if (--asking_ == 0) asking_.notify_all();
  Defer(&freed, ended);
  GiveAll(&freed);
}

void CaptureOrderAllocator::Defer(List* freed, std::uint64_t ended) noexcept {
  const Marked& mark = freed->front();
  if (!mark.unknown && mark.frontier.empty()) return;
  const std::lock_guard<std::mutex> guard(mutex_);
  if (ended == ended_) deferred_.splice(deferred_.end(), *freed);
}

void CaptureOrderAllocator::TakeReady(List* ready) noexcept {
  List deferred;
  std::uint64_t ended = 0;
  {
    const std::lock_guard<std::mutex> guard(mutex_);
    deferred.splice(deferred.end(), deferred_);
    ended = ended_;
  }
  if (deferred.empty()) return;
  Device& device = *own_->device();
  std::vector<GraphNode> now;
  const bool is_capturing = CaptureFrontier(device, own_->stream(), &now);
  for (auto mark = deferred.begin(); is_capturing && mark != deferred.end();) {
    const auto next = std::next(mark);
    if (!mark->unknown && AllPrecede(device, mark->frontier, now)) {
      ready->splice(ready->end(), deferred, mark);
    }
    mark = next;
  }
  const std::lock_guard<std::mutex> guard(mutex_);
  // A capture that ended in between did not see these blocks: free them now.
  if (ended == ended_) {
    deferred_.splice(deferred_.begin(), deferred);
  } else {
    ready->splice(ready->end(), deferred);
  }
}

void CaptureOrderAllocator::GiveAll(List* ready) noexcept {
  for (const Marked& mark : *ready) underlying()->DoFree(mark.allocation);
  ready->clear();
}

Allocation* CaptureOrderAllocator::TryAllocate(const Request& request,
                                               Failure& failure) noexcept {
  Request cached = request;
  cached.flags |= kNoGrowth;
  if (Allocation* found = underlying()->TryAllocate(cached, failure)) {
    return found;
  }
  List ready;
  TakeReady(&ready);
  if (!ready.empty()) {
    GiveAll(&ready);
    if (Allocation* found = underlying()->TryAllocate(cached, failure)) {
      return found;
    }
  }
  if ((request.flags & kNoGrowth) != 0) return nullptr;
  return underlying()->TryAllocate(request, failure);
}

void CaptureOrderAllocator::CaptureEnded() noexcept {
  List ready;
  {
    const std::lock_guard<std::mutex> guard(mutex_);
    ++ended_;
    for (Marked& mark : marked_) {
      mark.frontier.clear();
      mark.unknown = false;
    }
    ready.splice(ready.end(), deferred_);
  }
  GiveAll(&ready);
}

}  // namespace strata
