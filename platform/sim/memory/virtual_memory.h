#ifndef STRATA_PLATFORM_SIM_MEMORY_VIRTUAL_MEMORY_H_
#define STRATA_PLATFORM_SIM_MEMORY_VIRTUAL_MEMORY_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "strata/platform/memory_types.h"
#include "strata/platform/sim/bytes/host_views.h"
#include "strata/platform/sim/faults/sim_leaks.h"
#include "strata/platform/sim/memory/address_lane.h"
#include "strata/platform/sim/memory/frame_table.h"
#include "strata/platform/sim/memory/mapped_memory.h"
#include "strata/platform/sim/memory/physical_memory.h"
#include "strata/platform/status.h"

namespace strata::sim {

// The window for reservations of all devices of a platform. It is above the
// windows of other memory and below 2^53 (device_memory.h).
inline constexpr DevicePtr kReservedWindowBegin = DevicePtr{3} << 51;
inline constexpr std::uint64_t kReservedWindowBytes = std::uint64_t{1} << 51;
// Hints for reservations are multiples of the host's page. Sizes are multiples
// of kFrameBytes, and below kMaxReservationBytes (cuda_semantics.md V1).
inline constexpr std::uint64_t kHintUnitBytes = 4096;
inline constexpr std::uint64_t kMaxReservationBytes = std::uint64_t{1} << 47;

// Address ranges, and the memory mapped into them.
//
// Model: a page table in software, shared by the devices of a platform. Each
//   mapping maps the whole memory of a handle and has rights per device. A
//   reservation starts at a multiple of kFrameBytes that the address lane
//   selects; hints are checked and not followed. Mapping and unmapping are not
//   ordered with work in streams (cuda_semantics.md V8).
// Errors: the Status of the Device entry point that each method implements.
// Threads: externally synchronised.
// Cost: O(log ranges), plus the number of mappings in the range.
// Source: cuda_semantics.md §4; rules marked [S] were seen on an H200, driver
//   580.159.
class VirtualMemory final : public MappedMemory {
 public:
  // Both outlive this. `views` of unmapped ranges are dropped.
  VirtualMemory(PhysicalMemory* physical, HostViews* views);

  Status Reserve(int device, std::uint64_t bytes, std::uint64_t alignment,
                 DevicePtr hint, DevicePtr* ptr);
  Status FreeReservation(DevicePtr ptr, std::uint64_t bytes);
  // kNotSupported for a part of the handle's memory, at any address.
  Status Map(DevicePtr ptr, std::uint64_t bytes, std::uint64_t offset,
             MemHandle handle);
  // The range lies in a reservation and splits no mapping. It may have holes,
  // or no mapping at all. On success sets a non-null `mappings` to the number
  // of mappings in the range.
  Status Unmap(DevicePtr ptr, std::uint64_t bytes, std::uint64_t* mappings);
  Status SetAccess(DevicePtr ptr, std::uint64_t bytes,
                   const AccessDescriptor* access, std::size_t count,
                   std::uint64_t* mappings);
  Status GetAccess(DevicePtr ptr, Location location, Access* access) const;
  Status Retain(DevicePtr ptr, MemHandle* handle);

  bool Contains(DevicePtr ptr) const override {
    return ptr >= kReservedWindowBegin &&
           ptr - kReservedWindowBegin < kReservedWindowBytes;
  }
  // True for all addresses: AccessOf() decides whether they are memory.
  bool IsLive(DevicePtr, std::uint64_t) const override { return true; }
  std::optional<Access> AccessOf(DevicePtr ptr, std::uint64_t bytes,
                                 int device) const override;
  std::optional<Place> Locate(DevicePtr ptr) const override;
  // Adds the reservations of `device`, and the mappings of its memory.
  void AddLeaks(int device, SimLeaks* leaks) const;

 private:
  struct Reservation {
    std::uint64_t bytes;
    int device;  // the device that reserved it
  };
  struct Mapping {
    std::uint64_t bytes;
    MemHandle handle;
    std::vector<Access> rights;  // by device
  };
  using Mappings = std::map<DevicePtr, Mapping>;

  bool InOneReservation(DevicePtr ptr, std::uint64_t bytes) const;
  Mappings::const_iterator MappingAt(DevicePtr ptr) const;
  bool AnyMapped(DevicePtr ptr, std::uint64_t bytes) const;
  struct Span {
    Mappings::iterator begin;
    Mappings::iterator end;
  };
  // The mappings in a range of one reservation; nullopt if the range splits
  // one.
  std::optional<Span> MappingsIn(DevicePtr ptr, std::uint64_t bytes);
  // Like MappingsIn; nullopt also if the range has a hole.
  std::optional<Span> UnbrokenMappings(DevicePtr ptr, std::uint64_t bytes);
  bool IsDevice(const Location& location) const;
  bool ValidDescriptors(const AccessDescriptor* access,
                        std::size_t count) const;

  PhysicalMemory* const physical_;
  HostViews* const views_;
  AddressLane lane_{kReservedWindowBegin, kReservedWindowBytes};
  std::map<DevicePtr, Reservation> reservations_;
  Mappings mappings_;
};

}  // namespace strata::sim

#endif  // STRATA_PLATFORM_SIM_MEMORY_VIRTUAL_MEMORY_H_
