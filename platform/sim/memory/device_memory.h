#ifndef STRATA_PLATFORM_SIM_MEMORY_DEVICE_MEMORY_H_
#define STRATA_PLATFORM_SIM_MEMORY_DEVICE_MEMORY_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "strata/platform/memory_types.h"
#include "strata/platform/sim/bytes/frame_store.h"
#include "strata/platform/sim/bytes/host_views.h"
#include "strata/platform/sim/bytes/kept_bytes.h"
#include "strata/platform/sim/memory/address_lane.h"
#include "strata/platform/sim/memory/device_windows.h"
#include "strata/platform/sim/memory/frame_table.h"
#include "strata/platform/sim/memory/recycled_map.h"
#include "strata/platform/sim/memory/slice_space.h"
#include "strata/platform/status.h"

namespace strata::sim {

// Device d allocates addresses in [kDeviceWindowBegin + d * kDeviceWindowBytes,
// … + kDeviceWindowBytes). These are above the addresses of a process on x86-64
// and AArch64, so a dereference on the host faults. They are below 2^53, so
// that a JSON number can hold them.
inline constexpr DevicePtr kDeviceWindowBegin = DevicePtr{1} << 49;
inline constexpr std::uint64_t kDeviceWindowBytes = std::uint64_t{1} << 44;
inline constexpr DeviceWindows kDeviceWindows{kDeviceWindowBegin,
                                              kDeviceWindowBytes};
// A quarter of the window, so that frames run out before addresses.
inline constexpr std::uint64_t kMaxDeviceMemoryBytes = kDeviceWindowBytes / 4;

// The device with `ptr` in its window, or -1.
inline int DeviceOfAddress(DevicePtr ptr) {
  return kDeviceWindows.DeviceOf(ptr);
}

// The memory of one device: frames, addresses and stored bytes.
//
// Model: frames are physical memory (frame_table.h) and decide whether a
//   request fits. Addresses are separate.
//   The window has 2 TiB for slices, 10 TiB for frames, and 4 TiB for requests
//   that find no gap in their own part. The last part uses first fit, so that
//   scattered long-lived allocations do not exhaust addresses before frames:
//   first fit needs at most M log2(M / least size) addresses for M bytes
//   (Robson, 1977). This is below 4 TiB for a device of 128 GiB.
// Errors: the constructor throws as FrameStore's does.
// Threads: externally synchronised.
class DeviceMemory {
 public:
  // `bytes` is rounded down to whole frames. A non-null `views` outlives this;
  // views of freed allocations are dropped.
  DeviceMemory(int device, std::uint64_t bytes,
               SimData data = SimData::kPhantom, HostViews* views = nullptr);

  std::uint64_t total_bytes() const { return frames_.frames() * kFrameBytes; }
  std::uint64_t free_bytes() const {
    return frames_.free_frames() * kFrameBytes;
  }
  // Maximum since the last reset of the bytes in use, without free memory and
  // memory of other processes.
  std::uint64_t peak_used_bytes() const { return peak_used_bytes_; }
  // Sets the peak to the bytes in use now.
  void ResetPeakUsedBytes();
  std::uint64_t live_count() const { return live_count_; }
  std::uint64_t live_bytes() const { return live_bytes_; }

  // kSuccess or kMemoryAllocation. `bytes` > 0.
  Status Allocate(std::uint64_t bytes, DevicePtr* ptr);
  // kSuccess, or kInvalidValue unless `ptr` starts a live allocation.
  Status Free(DevicePtr ptr);
  // Allocates memory without addresses, for pools and virtual memory. kSuccess
  // or kMemoryAllocation. `bytes` is a positive multiple of kFrameBytes.
  Status TakeFrames(std::uint64_t bytes, FrameShare* share);
  void GiveFrames(const FrameShare& share);
  // The addresses of memory from TakeFrames are no longer mapped.
  void DropViews(DevicePtr ptr, std::uint64_t bytes);

  // True if the next two functions mark or drop bytes.
  bool marks() const {
    return kept_ != nullptr || (store_ != nullptr && store_->marks());
  }
  // Bytes of frames that stay allocated were allocated again, or freed.
  void NoteFresh(const PhysicalRun& run);
  void NoteFreed(const PhysicalRun& run);

  // Another process allocates memory of the device: `bytes` in whole frames,
  // but at most the free frames. Returns the bytes allocated.
  std::uint64_t TakeExternal(std::uint64_t bytes);
  // The process frees `bytes` in whole frames, but at most its memory.
  void GiveExternal(std::uint64_t bytes);
  std::uint64_t external_bytes() const { return external_bytes_; }

  // True if one live allocation covers [ptr, ptr + bytes).
  bool Covers(DevicePtr ptr, std::uint64_t bytes) const;
  // The contiguous bytes from `ptr` on, up to the end of its live allocation.
  // Nullopt if there is no such allocation.
  std::optional<PhysicalRun> Locate(DevicePtr ptr) const;
  // Like Locate(ptr), for memory from TakeFrames; `offset` is below its size.
  PhysicalRun Locate(const FrameShare& share, std::uint64_t offset) const {
    return frames_.Locate(share, offset);
  }
  // All bytes; null if not all are stored.
  const FrameStore* store() const { return store_.get(); }
  FrameStore* store() { return store_.get(); }
  // Small writes; null if all bytes or none are stored.
  KeptBytes* kept() const { return kept_.get(); }

 private:
  using LiveMap = RecycledMap<DevicePtr, LiveAllocation>;

  void NotePeak();
  std::optional<FrameShare> Take(std::uint64_t bytes);
  // These move `live` if they find an address.
  std::optional<DevicePtr> AddLarge(LiveAllocation& live);
  std::optional<DevicePtr> AddSpare(LiveAllocation& live);
  std::optional<LiveAllocation> Remove(DevicePtr ptr);

  FrameTable frames_;
  const std::unique_ptr<FrameStore> store_;  // null: not all bytes are stored
  const std::unique_ptr<KeptBytes> kept_;    // null: all bytes or none are
  std::vector<FrameExtent> external_;        // of other processes
  std::uint64_t external_bytes_ = 0;
  HostViews* const views_;
  SliceSpace slices_;
  AddressLane frame_lane_;
  AddressLane spare_lane_;
  LiveMap live_;  // allocations outside slices_
  std::uint64_t live_count_ = 0;
  std::uint64_t live_bytes_ = 0;
  std::uint64_t peak_used_bytes_ = 0;
};

}  // namespace strata::sim

#endif  // STRATA_PLATFORM_SIM_MEMORY_DEVICE_MEMORY_H_
