#include "strata/tools/peers/rmm/rmm_pool_peer.h"

#include <algorithm>
#include <memory>
#include <new>

#include "strata/base/size.h"
#include "strata/tools/peers/registry.h"

namespace strata::peers {
namespace {

constexpr std::size_t kRmmAlignmentBytes = 256;

}  // namespace

RmmPoolPeer::RmmPoolPeer(Device& device, const RmmPoolOptions& options)
    : device_(device), options_(options) {
  if (options.initial_bytes == 0) return;
  const RmmBlock chunk = NewChunk(options.initial_bytes);
  if (chunk.address == 0) throw std::bad_alloc();
  free_[EventOf(device.LegacyStream())].Insert(chunk);
}

RmmPoolPeer::~RmmPoolPeer() {
  // A failure shows as a leak of the device.
  for (const auto& [uid, event] : events_) {
    device_.EventSynchronize(event.event);
    device_.EventDestroy(event.event);
  }
  for (const DevicePtr chunk : chunks_) device_.MemFree(chunk);
}

bool RmmPoolPeer::Allocate(std::size_t bytes, const Stream& stream,
                           PeerBlock* block) {
  if (bytes == 0) {
    *block = PeerBlock{};
    return true;
  }
  const std::optional<std::size_t> rounded =
      CheckedAlignUp(bytes, kRmmAlignmentBytes);
  if (!rounded) return false;
  const std::lock_guard<std::mutex> lock(mutex_);
  const RmmBlock found = FindBlock(*rounded, EventOf(stream));
  if (found.address == 0) return false;
  ++stats_.allocations;
  stats_.in_use_bytes += *rounded;
  *block = {found.address, *rounded, stream, nullptr};
  return true;
}

void RmmPoolPeer::Free(const PeerBlock& block) {
  if (block.address == 0) return;
  const std::lock_guard<std::mutex> lock(mutex_);
  const StreamEvent& mine = EventOf(block.stream);
  stats_.in_use_bytes -= block.bytes;
  const bool is_head = chunks_.find(block.address) != chunks_.end();
  RequireSuccess(device_.EventRecord(mine.event, block.stream, 0),
                 DeviceCall::kEventRecord);
  free_[mine].Insert({block.address, block.bytes, is_head});
}

PeerStats RmmPoolPeer::stats() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return stats_;
}

const RmmPoolPeer::StreamEvent& RmmPoolPeer::EventOf(const Stream& stream) {
  const auto found = events_.find(stream.uid);
  if (found != events_.end()) return found->second;
  StreamEvent event{stream, {}};
  RequireSuccess(device_.EventCreate(&event.event, kEventDisableTiming),
                 DeviceCall::kEventCreate);
  return events_.emplace(stream.uid, event).first->second;
}

RmmBlock RmmPoolPeer::FindBlock(std::size_t bytes, const StreamEvent& mine) {
  RmmFreeList& own = free_[mine];
  const RmmBlock found = own.TakeBestFit(bytes);
  if (found.address != 0) return Split(found, bytes, own);
  const RmmBlock stolen = Steal(bytes, mine);
  if (stolen.address != 0) return stolen;
  const RmmBlock taken = TakeOver(bytes, mine);
  if (taken.address != 0) return taken;
  const RmmBlock grown = Grow(bytes);
  return grown.address == 0 ? grown : Split(grown, bytes, own);
}

RmmBlock RmmPoolPeer::Steal(std::size_t bytes, const StreamEvent& mine) {
  for (auto& [other, list] : free_) {
    if (other.event == mine.event) continue;
    const RmmBlock found = list.TakeBestFit(bytes);
    if (found.address == 0) continue;
    RequireSuccess(device_.StreamWaitEvent(mine.stream, other.event, 0),
                   DeviceCall::kStreamWaitEvent);
    return Split(found, bytes, list);
  }
  return {};
}

RmmBlock RmmPoolPeer::TakeOver(std::size_t bytes, const StreamEvent& mine) {
  RmmFreeList& own = free_[mine];
  for (auto at = free_.begin(); at != free_.end();) {
    if (at->first.event == mine.event) {
      ++at;
      continue;
    }
    RequireSuccess(device_.StreamWaitEvent(mine.stream, at->first.event, 0),
                   DeviceCall::kStreamWaitEvent);
    own.Insert(at->second);
    at = free_.erase(at);
    const RmmBlock found = own.TakeBestFit(bytes);
    if (found.address != 0) return Split(found, bytes, own);
  }
  return {};
}

std::size_t RmmPoolPeer::Growth(std::size_t bytes) const {
  const std::size_t held = stats_.reserved_bytes;
  if (!options_.maximum_bytes) return std::max(bytes, held);
  const std::size_t left = AlignUp(*options_.maximum_bytes - held, 256);
  return bytes <= left ? std::max(bytes, left / 2) : 0;
}

RmmBlock RmmPoolPeer::Grow(std::size_t bytes) {
  std::size_t wanted = Growth(bytes);
  while (wanted >= bytes) {
    const RmmBlock chunk = NewChunk(wanted);
    if (chunk.address != 0 || wanted == bytes) return chunk;
    wanted = std::max(bytes, wanted / 2);
  }
  return {};
}

RmmBlock RmmPoolPeer::NewChunk(std::size_t bytes) {
  DevicePtr address = 0;
  if (!FoundMemory(device_.MemAlloc(&address, bytes), DeviceCall::kMemAlloc)) {
    return {};
  }
  chunks_.insert(address);
  stats_.AddReserved(bytes);
  return {address, bytes, /*is_head=*/true};
}

RmmBlock RmmPoolPeer::Split(const RmmBlock& block, std::size_t bytes,
                            RmmFreeList& list) {
  if (block.bytes > bytes) {
    list.Insert(
        {block.address + bytes, block.bytes - bytes, /*is_head=*/false});
  }
  return {block.address, bytes, block.is_head};
}

std::unique_ptr<Peer> MakeRmmPoolPeer(Device& device) {
  return std::make_unique<RmmPoolPeer>(device, RmmPoolOptions{});
}

}  // namespace strata::peers
