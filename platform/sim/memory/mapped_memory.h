#ifndef STRATA_PLATFORM_SIM_MEMORY_MAPPED_MEMORY_H_
#define STRATA_PLATFORM_SIM_MEMORY_MAPPED_MEMORY_H_

#include <cstdint>
#include <optional>

#include "strata/platform/memory_types.h"
#include "strata/platform/sim/memory/frame_table.h"

namespace strata::sim {

// Addresses that map to frames of any device, with different rights for each
// device: virtual memory, pools.
//
// Threads: externally synchronised.
class MappedMemory {
 public:
  // Contiguous bytes in the memory of `device`.
  struct Place {
    int device;
    PhysicalRun run;
  };

  MappedMemory() = default;
  MappedMemory(const MappedMemory&) = delete;
  MappedMemory& operator=(const MappedMemory&) = delete;
  virtual ~MappedMemory() = default;

  // True if `ptr` is an address of this kind, used or not.
  virtual bool Contains(DevicePtr ptr) const = 0;
  // True if new work may use [ptr, ptr + bytes). It may not use memory that was
  // freed in a stream; the work before the free still can.
  virtual bool IsLive(DevicePtr ptr, std::uint64_t bytes) const = 0;
  // True if [ptr, ptr + bytes) will be memory when a captured graph runs.
  virtual bool IsPromised(DevicePtr /*ptr*/, std::uint64_t /*bytes*/) const {
    return false;
  }
  // The rights of `device` to every byte of [ptr, ptr + bytes). Nullopt unless
  // all of them are memory. `bytes` > 0.
  virtual std::optional<Access> AccessOf(DevicePtr ptr, std::uint64_t bytes,
                                         int device) const = 0;
  // Like AccessOf, for work that is submitted now.
  virtual std::optional<Access> AccessOnSubmission(DevicePtr ptr,
                                                   std::uint64_t bytes,
                                                   int device) const {
    if (!IsLive(ptr, bytes)) return std::nullopt;
    return AccessOf(ptr, bytes, device);
  }
  // The contiguous memory behind `ptr`.
  virtual std::optional<Place> Locate(DevicePtr ptr) const = 0;
};

}  // namespace strata::sim

#endif  // STRATA_PLATFORM_SIM_MEMORY_MAPPED_MEMORY_H_
