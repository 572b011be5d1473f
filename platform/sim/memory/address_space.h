#ifndef STRATA_PLATFORM_SIM_MEMORY_ADDRESS_SPACE_H_
#define STRATA_PLATFORM_SIM_MEMORY_ADDRESS_SPACE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <vector>

#include "strata/platform/memory_types.h"
#include "strata/platform/sim/bytes/host_views.h"
#include "strata/platform/sim/bytes/kept_bytes.h"
#include "strata/platform/sim/memory/host_ranges.h"
#include "strata/platform/sim/memory/mapped_memory.h"
#include "strata/platform/sim/memory/physical_memory.h"

namespace strata::sim {

// All addresses of the devices of one platform: the owner of the memory, the
// rights of each device, and the place of the bytes.
//
// Model: the memory that an operation of a device may access:
// - Copy: memory of MemAlloc on any device; virtual memory and pools that the
//   device has access to; host memory.
// - Fill: as a copy, without pageable host memory.
// - Work (a kernel): memory of MemAlloc on its own device and on enabled peers;
//   virtual memory and pools that the device has access to; pinned, registered
//   and managed memory.
//
// Copies and fills are checked at submission and when they run, work only when
// it runs.
// Threads: externally synchronised.
// Cost: O(log ranges), plus the mappings in the range.
// Source: cuda_semantics.md H11, H13, V6, V10, P10.
class AddressSpace {
 public:
  // Both outlive this.
  AddressSpace(const PhysicalMemory* physical, const HostRanges* host)
      : physical_(physical), host_(host) {}

  // `memory` outlives this.
  void Add(const MappedMemory* memory) { mapped_.push_back(memory); }

  // kCaptured: submitted to a capture, to run at replays.
  enum class When { kSubmitted, kCaptured, kRuns };

  // True if `device` may access all of [ptr, ptr + bytes); `bytes` > 0. Work is
  // not checked before it runs.
  bool MayCopy(When when, int device, DevicePtr ptr, std::uint64_t bytes,
               bool write) const;
  bool MayFill(When when, int device, DevicePtr ptr, std::uint64_t bytes) const;
  bool MayWork(int device, const std::set<int>& peers, DevicePtr ptr,
               std::uint64_t bytes, bool write) const;
  // True if the addresses can be host memory and no device knows the memory.
  bool IsPageable(DevicePtr ptr, std::uint64_t bytes) const;

  // True if all of the range is memory that a device may be able to access: one
  // allocation, mappings without a hole, or one range of host memory.
  bool IsMemory(DevicePtr ptr, std::uint64_t bytes) const;

  // The largest range around `ptr` that IsMemory() accepts. Cost: a hundred
  // times IsMemory.
  struct Range {
    DevicePtr begin;
    std::uint64_t bytes;
  };
  std::optional<Range> RangeOf(DevicePtr ptr) const;

  PointerInfo Describe(DevicePtr ptr) const;

  // Consecutive bytes from an address on.
  struct Piece {
    char* bytes;  // null if not all bytes are stored
    std::uint64_t count;
    KeptBytes* kept = nullptr;  // the small writes to the memory, if any
    std::uint64_t offset = 0;   // of the first byte, for `kept`
  };
  // The first piece of a range that a function above allows.
  Piece At(DevicePtr ptr) const;
  // The bytes of the range as parts of files. Empty if any byte is not stored
  // in a file.
  std::vector<FilePart> PartsOf(DevicePtr ptr, std::uint64_t bytes) const;
  // The device memory behind `ptr`, if any.
  std::optional<MappedMemory::Place> Locate(DevicePtr ptr) const;

 private:
  const MappedMemory* MappedAt(DevicePtr ptr) const;
  bool IsLive(DevicePtr ptr, std::uint64_t bytes) const;
  // The device with `ptr` in its MemAlloc window, or -1.
  int OwnerOf(DevicePtr ptr) const;

  const PhysicalMemory* const physical_;
  const HostRanges* const host_;
  std::vector<const MappedMemory*> mapped_;
};

}  // namespace strata::sim

#endif  // STRATA_PLATFORM_SIM_MEMORY_ADDRESS_SPACE_H_
