#ifndef STRATA_TOOLS_PEERS_PEER_H_
#define STRATA_TOOLS_PEERS_PEER_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "strata/platform/device.h"
#include "strata/platform/device_call.h"
#include "strata/platform/memory_types.h"
#include "strata/platform/status.h"
#include "strata/platform/stream.h"

namespace strata {

// A block of a peer, as the one who holds it knows it.
struct PeerBlock {
  DevicePtr address = 0;   // 0: nothing, which a request of 0 bytes gets
  std::size_t bytes = 0;   // that are the holder's: the request, rounded up
  Stream stream;           // that it was made for
  void* record = nullptr;  // the original's own object, where it hands one out
};

// Memory that an original had from the device in one piece, and its live
// blocks, ascending.
struct PeerSegment {
  struct Block {
    std::uint64_t offset = 0;
    std::uint64_t bytes = 0;  // as the original rounded them
  };

  std::uint64_t bytes = 0;
  Stream stream;
  std::vector<Block> blocks;
};

// What a peer says of itself, counted as its original counts.
struct PeerStats {
  std::uint64_t allocations = 0;  // served, those of 0 bytes not counted
  std::uint64_t in_use_bytes = 0;
  std::uint64_t reserved_bytes = 0;
  std::uint64_t peak_reserved_bytes = 0;

  void AddReserved(std::uint64_t bytes) {
    reserved_bytes += bytes;
    peak_reserved_bytes = std::max(peak_reserved_bytes, reserved_bytes);
  }
};

// An allocator that people run today, with its rules written anew, to compare
// with.
//
// Model: on a device alone. Its data structures are those of its original:
//   a tree where that has a tree, a list where that has a list, so that the
//   time it takes means something. Errors that only a wrong caller can make are
//   not looked for.
// Errors: std::runtime_error naming the call, if the device refuses one for
//   another reason than lack of memory.
// Threads: any thread, by one lock over everything, as in the originals; some
//   of them call the device with it held, and so does their peer.
// Lifetime: the device outlives the peer. Destroyed after the last free, when
//   all work is done; its streams may be gone by then.
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
  // `block` is as Allocate left it.
  virtual void Free(const PeerBlock& block) = 0;
  // Returns idle memory to the device: the original's empty_cache(). Does
  // nothing if the original has no such call.
  virtual void Release() {}
  // Takes over the segments of the original at the beginning of a recording,
  // and adds their blocks to `blocks`, in order. Call it before Allocate.
  // False, and nothing changes, if the peer cannot do that, or memory is too
  // small.
  virtual bool Restore(const std::vector<PeerSegment>& /*segments*/,
                       std::vector<PeerBlock>* /*blocks*/) {
    return false;
  }
  virtual PeerStats stats() const = 0;
};

// Whether a call that may find no memory succeeded.
//
// Errors: std::runtime_error naming `call`, if it failed for another reason.
bool FoundMemory(Status status, DeviceCall call);

// Errors: std::runtime_error naming `call`, unless it succeeded.
void RequireSuccess(Status status, DeviceCall call);

// Throws BadAlloc with what `peer` and `device` hold: `peer` had nothing for a
// request of `bytes`.
[[noreturn]] void ThrowOutOfMemory(const Peer& peer, Device& device,
                                   std::size_t bytes);

}  // namespace strata

#endif  // STRATA_TOOLS_PEERS_PEER_H_
