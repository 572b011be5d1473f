#ifndef STRATA_PLATFORM_SIM_ADDRESS_SPACE_H_
#define STRATA_PLATFORM_SIM_ADDRESS_SPACE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <vector>

#include "strata/platform/memory_types.h"
#include "strata/platform/sim/host_ranges.h"
#include "strata/platform/sim/host_views.h"
#include "strata/platform/sim/mapped_memory.h"
#include "strata/platform/sim/physical_memory.h"

namespace strata {

// Every address that the devices of one platform know: whose memory it is, who
// may touch it, and where its bytes are.
//
// Model: a copy may touch memory of MemAlloc on any device, what its device
//   has been given access to of virtual memory and pools, and host memory. A
//   fill may touch the same but pageable host memory. Work (a kernel) may touch
//   memory of MemAlloc on its own device and on enabled peers, what its device
//   has been given access to, and pinned, registered and managed memory.
//   Memory is asked for twice: when work is submitted, and at its turn.
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

  // kCaptured: by a capture, to run at replays.
  enum class When { kSubmitted, kCaptured, kRuns };

  // What `device` may do with all of [ptr, ptr + bytes); `bytes` > 0. Work is
  // not checked before it runs.
  bool MayCopy(When when, int device, DevicePtr ptr, std::uint64_t bytes,
               bool write) const;
  bool MayFill(When when, int device, DevicePtr ptr, std::uint64_t bytes) const;
  bool MayWork(int device, const std::set<int>& peers, DevicePtr ptr,
               std::uint64_t bytes, bool write) const;
  // Whether the bytes are memory of the host that no device knows of, as far
  // as their addresses tell.
  bool IsPageable(DevicePtr ptr, std::uint64_t bytes) const;

  // Whether all of the range is memory that some device may have access to:
  // one allocation, mappings without a hole, or one range of the host.
  bool IsMemory(DevicePtr ptr, std::uint64_t bytes) const;

  // The most memory that IsMemory and that `ptr` lies in. Cost: a hundred times
  // IsMemory.
  struct Range {
    DevicePtr begin;
    std::uint64_t bytes;
  };
  std::optional<Range> RangeOf(DevicePtr ptr) const;

  PointerInfo Describe(DevicePtr ptr) const;

  // Bytes from an address on.
  struct Piece {
    char* bytes;  // null if they are not kept
    std::uint64_t count;
  };
  // The first piece of memory that one of the above allows.
  Piece At(DevicePtr ptr) const;
  // The same as parts of files; empty if the bytes of any are not kept there.
  std::vector<FilePart> PartsOf(DevicePtr ptr, std::uint64_t bytes) const;
  // Which memory of a device is behind `ptr`, if any.
  std::optional<MappedMemory::Place> Locate(DevicePtr ptr) const;

 private:
  const MappedMemory* MappedAt(DevicePtr ptr) const;
  bool IsLive(DevicePtr ptr, std::uint64_t bytes) const;
  // The device whose MemAlloc addresses `ptr` is among, or -1.
  int OwnerOf(DevicePtr ptr) const;

  const PhysicalMemory* const physical_;
  const HostRanges* const host_;
  std::vector<const MappedMemory*> mapped_;
};

}  // namespace strata

#endif  // STRATA_PLATFORM_SIM_ADDRESS_SPACE_H_
