#ifndef STRATA_PLATFORM_SIM_POOLS_POOL_TABLE_H_
#define STRATA_PLATFORM_SIM_POOLS_POOL_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "strata/platform/memory_types.h"
#include "strata/platform/sim/memory/device_memory.h"
#include "strata/platform/sim/memory/mapped_memory.h"
#include "strata/platform/sim/pools/pool_space.h"
#include "strata/platform/sim/pools/stream_pool.h"
#include "strata/platform/sim/streams/stream_order.h"
#include "strata/platform/status.h"
#include "strata/platform/stream.h"

namespace strata::sim {

// The device that created the handle of a pool; -1 if no device can have
// created it.
int DeviceOfPool(MemPool pool);

// The pools of one device: the default pool, created pools, and imported
// handles.
//
// Model: handles are never reused. A pool lives until its handles and its
//   blocks are gone. After that its memory is released as soon as no work is
//   pending on it. An imported handle is another name of the exported pool; it
//   cannot allocate.
// Threads: externally synchronised.
// Lifetime: `memory` outlives it.
// Source: cuda_semantics.md P5, P6, P8, P9, P11, P12.
class PoolTable final : public MappedMemory {
 public:
  PoolTable(int device, DeviceMemory* memory);

  MemPool default_pool() const { return default_pool_; }
  MemPool Create(std::uint64_t max_bytes, ShareType share);
  // Returns another handle of `pool`, which is in this table.
  MemPool Import(MemPool pool);
  // kSuccess, or kInvalidValue for the default pool and for an invalid handle.
  Status Destroy(MemPool pool, const StreamOrder& order);

  // The pool with this handle, or null.
  StreamPool* Find(MemPool pool) const;
  // True if the handle is valid and was not imported.
  bool Owns(MemPool pool) const;

  // Allocates `bytes` > 0 from a pool that Find returned. kSuccess or
  // kMemoryAllocation. Tries in turn: memory that is free for the stream;
  // growth; growth after a release of idle chunks of all pools; free memory
  // that the stream has to wait for. Idle chunks are released only if growth
  // then succeeds.
  Status Allocate(StreamPool* pool, std::uint64_t bytes, const Stream& stream,
                  StreamOrder* order, DevicePtr* ptr);
  // Returns true if `ptr` starts a live block of any pool. The block is then
  // free from `point` on; without a point, at once. A free at once also removes
  // the pending marks in the block.
  bool Free(DevicePtr ptr, const std::optional<StreamPoint>& point,
            const StreamOrder& order);

  // Updates every pool after the host has waited for a stream, an event or the
  // device (cuda_semantics.md P5, P6).
  void OnSynchronize(const StreamOrder& order, WaitedFor waited);
  // Releases idle chunks until the device has `bytes` free. Returns false and
  // releases none if there are too few, or if that much is free already.
  bool MakeRoom(std::uint64_t bytes, const StreamOrder& order);

  // Bytes of the live block that starts at `ptr`, or 0.
  std::uint64_t BlockBytes(DevicePtr ptr) const;

  // Plans to mark the live block at `ptr` as fresh or as freed. The work calls
  // RunMark with the returned number when it runs. Returns 0 if bytes are not
  // marked (frame_store.h).
  std::uint64_t AddMark(DevicePtr ptr, bool fresh);
  void RunMark(std::uint64_t number);

  // MappedMemory. Memory that was freed in stream order stays mapped for the
  // work that was submitted before.
  bool Contains(DevicePtr ptr) const override {
    return DeviceOfPoolAddress(ptr) == device_;
  }
  std::optional<Access> AccessOf(DevicePtr ptr, std::uint64_t bytes,
                                 int device) const override;
  std::optional<Place> Locate(DevicePtr ptr) const override;
  // True if one live block covers the range.
  bool IsLive(DevicePtr ptr, std::uint64_t bytes) const override;
  // True if a freed block covers the range and work before its free may still
  // use it.
  bool AwaitsFree(DevicePtr ptr, std::uint64_t bytes,
                  const StreamOrder& order) const;

  // Sums over all pools, including destroyed ones.
  std::uint64_t live_count() const;
  std::uint64_t live_bytes() const;
  // Number of handles that were created or imported, and not destroyed.
  std::uint64_t handle_count() const { return handles_.size() - 1; }

 private:
  struct Name {
    StreamPool* pool = nullptr;
    bool imported = false;
  };

  struct Mark {
    DevicePtr ptr;
    std::uint64_t bytes;
    bool fresh;
  };

  struct PoolRange {
    const StreamPool* pool;
    const PoolChunk* chunk;
  };

  std::optional<PoolRange> Resolve(DevicePtr ptr, std::uint64_t bytes) const;
  void MarkNow(const Mark& mark);
  void MarkFreedNow(DevicePtr ptr);
  MemPool AddName(StreamPool* pool, bool imported);
  bool HasName(const StreamPool* pool) const;
  std::uint64_t IdleBytes(const StreamOrder& order) const;
  bool MakeRoomIn(StreamPool* pool, std::uint64_t bytes,
                  const StreamOrder& order);
  void ReleaseUntil(std::uint64_t free_bytes, const StreamOrder& order);
  void Sweep(const StreamOrder& order);

  const int device_;
  DeviceMemory* const memory_;
  PoolSpace space_;
  std::vector<std::unique_ptr<StreamPool>> pools_;  // oldest first
  std::map<void*, Name> handles_;
  std::uintptr_t handles_made_ = 0;
  MemPool default_pool_;
  std::map<std::uint64_t, Mark> marks_;  // by number; those that have not run
  std::uint64_t marks_made_ = 0;
};

}  // namespace strata::sim

#endif  // STRATA_PLATFORM_SIM_POOLS_POOL_TABLE_H_
