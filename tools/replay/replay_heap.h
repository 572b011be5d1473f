#ifndef STRATA_TOOLS_REPLAY_REPLAY_HEAP_H_
#define STRATA_TOOLS_REPLAY_REPLAY_HEAP_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "strata/facade/allocator_facade.h"
#include "strata/platform/device.h"
#include "strata/platform/platform.h"
#include "strata/tools/peers/peer.h"
#include "strata/tools/replay/block_checker.h"

namespace strata::tools {

// The heaps that a replay drives: two classes with the same members, so that
// each is called as its users call it.

// A strategy, through the facade.
class FacadeReplayHeap {
 public:
  using Block = AllocationPtr;

  FacadeReplayHeap(const Options& options, std::shared_ptr<Platform> platform)
      : facade_(options, std::move(platform)) {}

  // Errors: as AllocatorFacade::Alloc.
  void Allocate(Block& block, std::size_t bytes, const Stream& stream) {
    block = facade_.Alloc(DevicePlace(0), bytes, stream);
  }
  void Free(Block& block) { block.reset(); }
  void Release() { facade_.Release(DevicePlace(0)); }
  static bool IsEmpty(const Block& block) { return block == nullptr; }
  // A strategy starts without memory.
  static bool Restore(const std::vector<peers::PeerSegment>& /*segments*/,
                      std::vector<Block>& /*blocks*/) {
    return false;
  }
  // Does nothing for an empty block.
  void Drop(Block& block) noexcept { block.reset(); }
  void StreamDestroyed(const Stream& stream) {
    facade_.StreamDestroyed(stream);
  }
  static CheckedBlock View(const Block& block) {
    return {reinterpret_cast<std::uintptr_t>(block->data()), block->size()};
  }

 private:
  AllocatorFacade facade_;
};

// A peer.
class PeerReplayHeap {
 public:
  using Block = peers::PeerBlock;

  // Errors: as peers::MakePeer.
  PeerReplayHeap(const Options& options, std::shared_ptr<Platform> platform);

  // Errors: BadAlloc, std::runtime_error.
  void Allocate(Block& block, std::size_t bytes, const Stream& stream) {
    if (!peer_->Allocate(bytes, stream, &block)) {
      ThrowOutOfMemory(*peer_, platform_->device(0), bytes);
    }
  }
  void Free(Block& block) {
    peer_->Free(block);
    block = Block{};
  }
  void Release() { peer_->Release(); }
  static bool IsEmpty(const Block& block) { return block.address == 0; }
  // As Peer::Restore, into the first of `blocks`.
  bool Restore(const std::vector<peers::PeerSegment>& segments,
               std::vector<Block>& blocks);
  // Free. A refused device call is reported only as a leak.
  void Drop(Block& block) noexcept;
  // The originals receive no such announcement.
  void StreamDestroyed(const Stream& /*stream*/) {}
  static CheckedBlock View(const Block& block) {
    return {block.address, block.bytes};
  }

 private:
  std::shared_ptr<Platform> platform_;
  std::unique_ptr<peers::Peer> peer_;
};

}  // namespace strata::tools

#endif  // STRATA_TOOLS_REPLAY_REPLAY_HEAP_H_
