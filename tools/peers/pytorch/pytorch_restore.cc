// The part of PytorchPeer that restores the state at the beginning of a
// recording.

#include <cstddef>
#include <vector>

#include "strata/base/size.h"
#include "strata/tools/peers/pytorch/pytorch_peer.h"

namespace strata::peers {
namespace {

// Every large segment is larger (pytorch.md §2.1).
constexpr std::size_t kSmallPoolSegmentBytes = Mebibytes(2);

}  // namespace

bool PytorchPeer::Restore(const std::vector<PeerSegment>& segments,
                          std::vector<PeerBlock>* blocks) {
  if (settings_.expandable_segments) return false;
  std::vector<DevicePtr> addresses;
  for (const PeerSegment& segment : segments) {
    DevicePtr address = 0;
    if (!FoundMemory(device_.MemAlloc(&address, segment.bytes),
                     DeviceCall::kMemAlloc)) {
      for (const DevicePtr taken : addresses) {
        RequireSuccess(device_.MemFree(taken), DeviceCall::kMemFree);
      }
      return false;
    }
    addresses.push_back(address);
  }
  const std::lock_guard<std::recursive_mutex> lock(mutex_);
  for (std::size_t i = 0; i < segments.size(); ++i) {
    const PeerSegment& segment = segments[i];
    Pool& pool = segment.bytes <= kSmallPoolSegmentBytes ? small_ : large_;
    Carve(segment,
          NewPlainSegment(pool, {addresses[i], segment.bytes}, segment.stream),
          blocks);
  }
  return true;
}

void PytorchPeer::Carve(const PeerSegment& segment, Block* block,
                        std::vector<PeerBlock>* blocks) {
  Block* rest = block;
  std::size_t offset = 0;  // of `rest`
  for (const PeerSegment::Block& live : segment.blocks) {
    if (live.offset > offset) AddFree(CutFront(rest, live.offset - offset));
    Block* used = rest;
    if (live.bytes < rest->bytes) {
      used = CutFront(rest, live.bytes);
    } else {
      rest = nullptr;
    }
    MarkInUse(used, live.bytes);
    live_.Insert(used->address, used);
    blocks->push_back({used->address, used->bytes, segment.stream, nullptr});
    offset = live.offset + live.bytes;
  }
  if (rest != nullptr) AddFree(rest);
}

}  // namespace strata::peers
