#include "strata/allocation/stream_safe_allocator.h"

#include <glog/logging.h>

#include <algorithm>
#include <new>
#include <utility>

#include "strata/allocation/registry.h"

namespace strata {

StreamSafeAllocator::StreamSafeAllocator(std::shared_ptr<Allocator> underlying,
                                         std::shared_ptr<Platform> platform,
                                         std::shared_ptr<ChainStream> own)
    : Decorator(std::move(underlying)),
      platform_(std::move(platform)),
      own_(std::move(own)) {}

void StreamSafeAllocator::Wait(Stream stream) noexcept {
  if (platform_ == nullptr || stream.device < 0 ||
      stream.device >= platform_->device_count()) {
    return;
  }
  ChainStream(platform_->device(stream.device), stream).Synchronize();
}

bool StreamSafeAllocator::RecordStream(Allocation* allocation,
                                       Stream stream) noexcept {
  Block* block = allocation->block();
  if (stream.uid == 0 || (own_ != nullptr && stream == own_->stream()) ||
      (block->flags & kBlockZeroSize) != 0) {
    return false;
  }
  if (underlying()->RecordStream(allocation, stream)) return true;
  try {
    const std::lock_guard<std::mutex> guard(mutex_);
    std::vector<Stream>& streams = marks_[block];
    if (std::find(streams.begin(), streams.end(), stream) == streams.end()) {
      streams.push_back(stream);
    }
    block->flags |= kBlockMarked;
    return true;
  } catch (const std::bad_alloc&) {
    // The mark cannot be kept, so the use it stands for is waited for now.
    LOG(ERROR) << "stream_safe: no host memory for a mark; waiting instead";
    Wait(stream);
    return false;
  }
}

void StreamSafeAllocator::EraseStream(Allocation* allocation,
                                      Stream stream) noexcept {
  underlying()->EraseStream(allocation, stream);
  Block* block = allocation->block();
  const std::lock_guard<std::mutex> guard(mutex_);
  const auto entry = marks_.find(block);
  if (entry == marks_.end()) return;
  std::vector<Stream>& streams = entry->second;
  streams.erase(std::remove(streams.begin(), streams.end(), stream),
                streams.end());
  if (streams.empty()) {
    marks_.erase(entry);
    block->flags &= static_cast<std::uint8_t>(~kBlockMarked);
  }
}

void StreamSafeAllocator::DoFree(Allocation* allocation) noexcept {
  Block* block = allocation->block();
  if ((block->flags & kBlockMarked) != 0) {
    Marks::node_type mark;
    {
      const std::lock_guard<std::mutex> guard(mutex_);
      mark = marks_.extract(block);
      block->flags &= static_cast<std::uint8_t>(~kBlockMarked);
    }
    if (mark) {
      for (const Stream& stream : mark.mapped()) Wait(stream);
    }
  }
  underlying()->DoFree(allocation);
}

void StreamSafeAllocator::StreamDestroyed(Stream stream) noexcept {
  const auto is_marked = [stream](const Marks::value_type& mark) {
    return std::find(mark.second.begin(), mark.second.end(), stream) !=
           mark.second.end();
  };
  bool any = false;
  {
    const std::lock_guard<std::mutex> guard(mutex_);
    any = std::any_of(marks_.begin(), marks_.end(), is_marked);
  }
  if (any) {
    Wait(stream);
    // The blocks keep their flag: with no stream left, freeing waits for none.
    const std::lock_guard<std::mutex> guard(mutex_);
    for (auto& [block, streams] : marks_) {
      streams.erase(std::remove(streams.begin(), streams.end(), stream),
                    streams.end());
    }
  }
  underlying()->StreamDestroyed(stream);
}

std::shared_ptr<Allocator> MakeStreamSafeAllocator(
    std::shared_ptr<Allocator> underlying, const DecoratorOptions& options,
    const ChainContext& context) {
  if (!options.stream_safe || context.platform == nullptr) return underlying;
  return std::make_shared<StreamSafeAllocator>(
      std::move(underlying), context.platform, context.stream);
}

}  // namespace strata
