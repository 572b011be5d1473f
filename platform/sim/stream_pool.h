#ifndef STRATA_PLATFORM_SIM_STREAM_POOL_H_
#define STRATA_PLATFORM_SIM_STREAM_POOL_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>

#include "strata/platform/memory_types.h"
#include "strata/platform/sim/pool_blocks.h"
#include "strata/platform/sim/pool_space.h"
#include "strata/platform/sim/stream_order.h"
#include "strata/platform/status.h"
#include "strata/platform/stream.h"

namespace strata {

// A pool grows by this much, or by the request if that is larger; seen on an
// H200, driver 580.159 (D16).
inline constexpr std::uint64_t kPoolGrowthBytes = std::uint64_t{32} << 20;
// Sizes are rounded up to this; so aligned is every block.
inline constexpr std::uint64_t kPoolBlockBytes = kSliceBytes;

struct StreamPoolOptions {
  int device = 0;  // the owner
  std::uint64_t max_bytes =
      0;  // reserved at most, in whole frames; 0: no limit
  ShareType share = ShareType::kNone;
};

// A stream-ordered pool of the simulated device.
//
// Model: a call decides at once, as the host side of a driver does, from what
//   the streams have been given so far; nothing is decided again when the work
//   runs. A request takes free memory that its stream may have (what it has
//   freed itself or the host has waited for; the reuse attributes say what
//   else), else the pool grows, else nothing. Memory goes back to the device in
//   whole chunks, and only when no work is pending on any part of them.
// Threads: externally synchronised.
// Lifetime: `space` outlives it. What it holds then is not given back.
// Source: cuda_semantics.md §3 P1-P11, D16.
class StreamPool {
 public:
  StreamPool(const StreamPoolOptions& options, PoolSpace* space);

  int device() const { return options_.device; }
  ShareType share() const { return options_.share; }
  std::uint64_t reserved_bytes() const { return blocks_.reserved_bytes(); }
  // How much more it may reserve.
  std::uint64_t room_bytes() const;
  std::uint64_t live_count() const { return blocks_.live_count(); }
  std::uint64_t live_bytes() const { return blocks_.live_bytes(); }

  // kSuccess or kMemoryAllocation: `bytes` > 0 for work of `stream` from now
  // on, without making it wait.
  Status Allocate(std::uint64_t bytes, const Stream& stream,
                  const StreamOrder& order, DevicePtr* ptr);
  // The same, with free memory of other streams, for which `stream` then waits;
  // kMemoryAllocation if the pool may not do that.
  Status AllocateWithWaits(std::uint64_t bytes, const Stream& stream,
                           StreamOrder* order, DevicePtr* ptr);
  // Returns whether `ptr` starts a live block; it is then free from `point` on,
  // or at once.
  bool Free(DevicePtr ptr, const std::optional<StreamPoint>& point);

  // Gives idle chunks back for as long as `keep_bytes` stay reserved.
  void TrimTo(std::uint64_t keep_bytes, const StreamOrder& order) {
    TrimTo(keep_bytes, &order);
  }
  // What the host has waited for serves every stream from now on, and chunks
  // above the release threshold go back: those of which all was waited for, or,
  // with opportunistic reuse, is done.
  void OnSynchronize(const StreamOrder& order, WaitedFor waited);
  // Gives one idle chunk back, if there is any.
  bool ReleaseChunk(const StreamOrder& order);
  // What giving all idle chunks back would bring.
  std::uint64_t IdleBytes(const StreamOrder& order) const {
    return blocks_.IdleBytes(order);
  }

  // kSuccess or kInvalidValue.
  Status SetAttribute(PoolAttribute attribute, std::uint64_t value);
  Status GetAttribute(PoolAttribute attribute, std::uint64_t* value) const;

  // Of blocks that exist and blocks to come. `device` is not the owner.
  void SetAccess(int device, Access access) { access_[device] = access; }
  Access AccessOf(int device) const;

  // Of the live block that starts at `ptr`, or 0.
  std::uint64_t BlockBytes(DevicePtr ptr) const {
    return blocks_.BlockBytes(ptr);
  }
  // Whether one live block covers [ptr, ptr + bytes).
  bool Covers(DevicePtr ptr, std::uint64_t bytes) const {
    return blocks_.Covers(ptr, bytes);
  }
  // The same for a block that work before its free may still use.
  bool CoversFreed(DevicePtr ptr, std::uint64_t bytes,
                   const StreamOrder& order) const {
    return blocks_.CoversFreed(ptr, bytes, order);
  }
  // The chunk that has all of [ptr, ptr + bytes), or null.
  const PoolChunk* FindChunk(DevicePtr ptr, std::uint64_t bytes) const {
    return blocks_.FindChunk(ptr, bytes);
  }

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

}  // namespace strata

#endif  // STRATA_PLATFORM_SIM_STREAM_POOL_H_
