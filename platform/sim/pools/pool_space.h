#ifndef STRATA_PLATFORM_SIM_POOLS_POOL_SPACE_H_
#define STRATA_PLATFORM_SIM_POOLS_POOL_SPACE_H_

#include <cstddef>
#include <cstdint>
#include <optional>

#include "strata/platform/memory_types.h"
#include "strata/platform/sim/memory/address_lane.h"
#include "strata/platform/sim/memory/device_memory.h"
#include "strata/platform/sim/memory/frame_table.h"

namespace strata::sim {

// The pools of device d have the addresses [kPoolWindowBegin + d *
// kPoolWindowBytes, … + kPoolWindowBytes). They are above the windows of
// MemAlloc, and as large as the largest device.
inline constexpr DevicePtr kPoolWindowBegin =
    (DevicePtr{1} << 52) + (DevicePtr{1} << 49);
inline constexpr std::uint64_t kPoolWindowBytes = std::uint64_t{1} << 42;
static_assert(kPoolWindowBytes >= kMaxDeviceMemoryBytes);
inline constexpr DeviceWindows kPoolWindows{kPoolWindowBegin, kPoolWindowBytes};

// The device with `ptr` in its window for pool memory, or -1.
inline int DeviceOfPoolAddress(DevicePtr ptr) {
  return kPoolWindows.DeviceOf(ptr);
}

// The unit that a pool allocates from its device: whole frames, mapped at
// consecutive addresses.
struct PoolChunk {
  DevicePtr ptr = 0;
  std::uint64_t bytes = 0;
  FrameShare share;
};

// Memory with addresses for the pools of one device.
//
// Model: the frames are the device's. Addresses are reused late, as in every
//   AddressLane.
// Threads: externally synchronised.
// Lifetime: `memory` outlives it.
class PoolSpace {
 public:
  PoolSpace(int device, DeviceMemory* memory);

  // `bytes` is a positive multiple of kFrameBytes. Nullopt if the device has
  // too few free frames.
  std::optional<PoolChunk> Take(std::uint64_t bytes);
  void Give(const PoolChunk& chunk);

  // Free memory of the device, in bytes.
  std::uint64_t free_bytes() const { return memory_->free_bytes(); }
  std::uint64_t total_bytes() const { return memory_->total_bytes(); }

 private:
  DeviceMemory* const memory_;
  AddressLane lane_;
};

}  // namespace strata::sim

#endif  // STRATA_PLATFORM_SIM_POOLS_POOL_SPACE_H_
