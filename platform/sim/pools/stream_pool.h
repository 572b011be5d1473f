#ifndef STRATA_PLATFORM_SIM_POOLS_STREAM_POOL_H_
#define STRATA_PLATFORM_SIM_POOLS_STREAM_POOL_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>

#include "strata/platform/memory_types.h"
#include "strata/platform/sim/pools/pool_blocks.h"
#include "strata/platform/sim/pools/pool_space.h"
#include "strata/platform/sim/streams/stream_order.h"
#include "strata/platform/status.h"
#include "strata/platform/stream.h"

namespace strata::sim {

// Growth step of a pool; a larger request grows the pool by its own size. Seen
// on an H200, driver 580.159 (D16).
inline constexpr std::uint64_t kPoolGrowthBytes = std::uint64_t{32} << 20;
// Sizes are rounded up to this value, and every block is aligned to it.
inline constexpr std::uint64_t kPoolBlockBytes = kSliceBytes;

struct StreamPoolOptions {
  int device = 0;  // the owner
  std::uint64_t max_bytes =
      0;  // reserved at most, in whole frames; 0: no limit
  ShareType share = ShareType::kNone;
};

// A stream-ordered pool of the simulated device.
//
// Model: a call decides at once, as the host side of a driver does, from the
//   work submitted so far. Running work changes no decision.
//   A request uses free memory that its stream may reuse: memory that the
//   stream freed itself, or that the host has waited for, or that the reuse
//   attributes allow. Otherwise the pool grows; otherwise the request fails.
//   The pool returns memory to the device in whole chunks, and only when no
//   work is pending on any part of them.
// Threads: externally synchronised.
// Lifetime: `space` outlives it. The destructor does not return the chunks.
// Source: cuda_semantics.md §3 P1-P11, D16.
class StreamPool {
 public:
  StreamPool(const StreamPoolOptions& options, PoolSpace* space);

  int device() const { return options_.device; }
  ShareType share() const { return options_.share; }
  std::uint64_t reserved_bytes() const { return blocks_.reserved_bytes(); }
  // Number of bytes by which the reservation may still grow.
  std::uint64_t room_bytes() const;
  const PoolBlocks& blocks() const { return blocks_; }

  // Allocates `bytes` > 0 for later work of `stream`, which need not wait.
  // kSuccess or kMemoryAllocation.
  Status Allocate(std::uint64_t bytes, const Stream& stream,
                  const StreamOrder& order, DevicePtr* ptr);
  // Allocates free memory of other streams; `stream` then waits for them.
  // kMemoryAllocation if the pool may not do that.
  Status AllocateWithWaits(std::uint64_t bytes, const Stream& stream,
                           StreamOrder* order, DevicePtr* ptr);
  // Returns true if `ptr` starts a live block. The block is then free from
  // `point` on; without a point, at once.
  bool Free(DevicePtr ptr, const std::optional<StreamPoint>& point);

  // Returns idle chunks to the device while at least `keep_bytes` stay
  // reserved.
  void TrimTo(std::uint64_t keep_bytes, const StreamOrder& order) {
    TrimTo(keep_bytes, &order);
  }
  // Memory that the host has waited for serves every stream from now on. Chunks
  // above the release threshold are returned to the device if the host has
  // waited for all of them, or, with opportunistic reuse, if all is complete.
  void OnSynchronize(const StreamOrder& order, WaitedFor waited);
  // Returns one idle chunk to the device, if there is any.
  bool ReleaseChunk(const StreamOrder& order);

  // kSuccess or kInvalidValue.
  Status SetAttribute(PoolAttribute attribute, std::uint64_t value);
  Status GetAttribute(PoolAttribute attribute, std::uint64_t* value) const;

  // Applies to existing and later blocks. `device` is not the owner.
  void SetAccess(int device, Access access) { access_[device] = access; }
  Access AccessOf(int device) const;

 private:
  ReuseRule Rule(const Stream& stream, const StreamOrder& order) const;
  void TrimTo(std::uint64_t keep_bytes, const StreamOrder* order);
  bool Grow(std::uint64_t bytes);
  bool AddChunk(std::uint64_t bytes);
  void NoteUsed();

  const StreamPoolOptions options_;
  PoolSpace* const space_;
  PoolBlocks blocks_;
  std::map<int, Access> access_;  // of devices other than the owner
  // Attributes; defaults as in CUDA (cuda_semantics.md P4, P6).
  bool follow_dependencies_ = true;
  bool opportunistic_ = true;
  bool internal_dependencies_ = true;
  std::uint64_t release_threshold_ = 0;
  std::uint64_t reserved_high_ = 0;
  std::uint64_t used_high_ = 0;
};

}  // namespace strata::sim

#endif  // STRATA_PLATFORM_SIM_POOLS_STREAM_POOL_H_
