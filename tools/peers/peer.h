#ifndef STRATA_TOOLS_PEERS_PEER_H_
#define STRATA_TOOLS_PEERS_PEER_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "strata/platform/calls/device_call.h"
#include "strata/platform/device.h"
#include "strata/platform/memory_types.h"
#include "strata/platform/status.h"
#include "strata/platform/stream.h"

namespace strata::peers {

// A block of a peer, as its holder sees it.
struct PeerBlock {
  DevicePtr address = 0;   // 0: none, the result of a request of 0 bytes
  std::size_t bytes = 0;   // usable bytes: the request, rounded up
  Stream stream;           // stream of the allocation
  void* record = nullptr;  // the original's object, if it returns one
};

// One piece of memory that an original held from the device, and its live
// blocks, ascending.
struct PeerSegment {
  struct Block {
    std::uint64_t offset = 0;
    std::uint64_t bytes = 0;  // as rounded by the original
  };

  std::uint64_t bytes = 0;
  Stream stream;
  std::vector<Block> blocks;
};

// Statistics of a peer, counted as in its original.
struct PeerStats {
  std::uint64_t allocations = 0;  // served, without requests of 0 bytes
  std::uint64_t in_use_bytes = 0;
  std::uint64_t reserved_bytes = 0;
  std::uint64_t peak_reserved_bytes = 0;

  void AddReserved(std::uint64_t bytes) {
    reserved_bytes += bytes;
    peak_reserved_bytes = std::max(peak_reserved_bytes, reserved_bytes);
  }
};

// A reimplementation of an allocator in wide use, for comparison.
//
// Model: it uses a device directly. Its data structures are those of its
//   original: a tree for a tree, a list for a list, so that its time is
//   comparable. It does not check for errors that only a wrong caller can make.
// Errors: std::runtime_error naming the call, if the device refuses one for
//   another reason than lack of memory.
// Threads: any thread, by one lock over everything, as in the originals. Some
//   originals call the device with the lock held, and so do their peers.
// Lifetime: the device outlives the peer. Destroy it after the last free, when
//   all work is complete; its streams may have been destroyed by then.
class Peer {
 public:
  Peer() = default;
  Peer(const Peer&) = delete;
  Peer& operator=(const Peer&) = delete;
  virtual ~Peer() = default;

  // "peer:<name>", with the name in peers.def.
  virtual const char* name() const = 0;
  // False, and `block` is untouched, if there is no memory left.
  virtual bool Allocate(std::size_t bytes, const Stream& stream,
                        PeerBlock* block) = 0;
  // `block` is unchanged since Allocate.
  virtual void Free(const PeerBlock& block) = 0;
  // Returns idle memory to the device: the original's empty_cache(). Does
  // nothing if the original has no such call.
  virtual void Release() {}
  // Starts with the segments of the original at the beginning of a recording,
  // and adds their blocks to `blocks`, in order. Call it before Allocate.
  // False, and nothing changes, if the peer cannot do that, or memory is too
  // small.
  virtual bool Restore(const std::vector<PeerSegment>& /*segments*/,
                       std::vector<PeerBlock>* /*blocks*/) {
    return false;
  }
  virtual PeerStats stats() const = 0;
};

// Whether a call that may run out of memory succeeded.
//
// Errors: std::runtime_error naming `call`, if it failed for another reason.
bool FoundMemory(Status status, DeviceCall call);

// Errors: std::runtime_error naming `call`, unless it succeeded.
void RequireSuccess(Status status, DeviceCall call);

// Throws BadAlloc with the figures of `peer` and `device`, because `peer` could
// not serve a request of `bytes`.
[[noreturn]] void ThrowOutOfMemory(const Peer& peer, Device& device,
                                   std::size_t bytes);

}  // namespace strata::peers

#endif  // STRATA_TOOLS_PEERS_PEER_H_
