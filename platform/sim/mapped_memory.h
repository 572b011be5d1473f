#ifndef STRATA_PLATFORM_SIM_MAPPED_MEMORY_H_
#define STRATA_PLATFORM_SIM_MAPPED_MEMORY_H_

#include <cstdint>
#include <optional>

#include "strata/platform/memory_types.h"
#include "strata/platform/sim/frame_table.h"

namespace strata {

// Addresses that lead to frames of any device and that each device may have
// other rights to: virtual memory, pools.
//
// Threads: externally synchronised.
class MappedMemory {
 public:
  // Bytes that lie next to each other in the memory of `device`.
  struct Place {
    int device;
    PhysicalRun run;
  };

  MappedMemory() = default;
  MappedMemory(const MappedMemory&) = delete;
  MappedMemory& operator=(const MappedMemory&) = delete;
  virtual ~MappedMemory() = default;

  // Whether `ptr` is an address of this kind, used or not.
  virtual bool Contains(DevicePtr ptr) const = 0;
  // Whether [ptr, ptr + bytes) may be given to new work. Memory that was freed
  // in a stream may not, but the work before the free still finds it.
  virtual bool IsLive(DevicePtr ptr, std::uint64_t bytes) const = 0;
  // Whether [ptr, ptr + bytes) will be memory when a captured graph runs.
  virtual bool IsPromised(DevicePtr /*ptr*/, std::uint64_t /*bytes*/) const {
    return false;
  }
  // What `device` may do with every byte of [ptr, ptr + bytes); nothing unless
  // there is memory behind all of them. `bytes` > 0.
  virtual std::optional<Access> AccessOf(DevicePtr ptr, std::uint64_t bytes,
                                         int device) const = 0;
  // The same for work that is submitted now.
  virtual std::optional<Access> AccessOnSubmission(DevicePtr ptr,
                                                   std::uint64_t bytes,
                                                   int device) const {
    if (!IsLive(ptr, bytes)) return std::nullopt;
    return AccessOf(ptr, bytes, device);
  }
  // Where the memory behind `ptr` is, as far as it is of one piece.
  virtual std::optional<Place> Locate(DevicePtr ptr) const = 0;
};

}  // namespace strata

#endif  // STRATA_PLATFORM_SIM_MAPPED_MEMORY_H_
