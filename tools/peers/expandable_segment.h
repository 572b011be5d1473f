#ifndef STRATA_TOOLS_PEERS_EXPANDABLE_SEGMENT_H_
#define STRATA_TOOLS_PEERS_EXPANDABLE_SEGMENT_H_

#include <cstddef>
#include <vector>

#include "strata/platform/device.h"
#include "strata/platform/memory_types.h"
#include "strata/platform/stream.h"

namespace strata {

// A range of addresses, part of which has memory behind it.
struct AddressRange {
  DevicePtr begin = 0;
  std::size_t bytes = 0;

  DevicePtr end() const { return begin + bytes; }
};

// An address range larger than the device, filled with physical memory granule
// by granule as it is needed.
//
// Errors: std::runtime_error if the device refuses a call for another reason
//   than lack of memory.
// Threads: externally synchronised.
// Source: pytorch.md §2.6.
class ExpandableSegment {
 public:
  // Every granule is a handle of `granule_bytes`.
  ExpandableSegment(Device& device, const Stream& stream,
                    std::size_t granule_bytes, std::size_t device_bytes);
  ExpandableSegment(const ExpandableSegment&) = delete;
  ExpandableSegment& operator=(const ExpandableSegment&) = delete;
  // Unmaps what is mapped, without waiting for the stream.
  ~ExpandableSegment();

  AddressRange range() const { return {begin_, reserved_bytes_}; }

  // Puts memory behind the granules that `range` touches, which have none;
  // `range` begins at one. Returns what was mapped: nothing if there is not
  // enough memory for all of it.
  AddressRange Map(AddressRange range);
  // Waits for the stream, then takes the memory from the granules that lie
  // within `range`. Returns what was unmapped: nothing if there is no granule.
  AddressRange Unmap(AddressRange range);

 private:
  bool Create(std::size_t first, std::size_t last);
  void MapGranules(std::size_t first, std::size_t last);
  void UnmapGranule(std::size_t granule);
  void Release(std::size_t granule);
  AddressRange RangeOf(std::size_t first, std::size_t last) const {
    return {begin_ + first * granule_bytes_, (last - first) * granule_bytes_};
  }
  MemProperties Properties() const;

  Device& device_;
  const Stream stream_;
  const std::size_t granule_bytes_;
  std::size_t reserved_bytes_ = 0;
  DevicePtr begin_ = 0;
  std::vector<MemHandle> handles_;  // by granule; 0: none
  std::vector<bool> is_mapped_;     // by granule
};

}  // namespace strata

#endif  // STRATA_TOOLS_PEERS_EXPANDABLE_SEGMENT_H_
