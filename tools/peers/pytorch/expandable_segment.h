#ifndef STRATA_TOOLS_PEERS_PYTORCH_EXPANDABLE_SEGMENT_H_
#define STRATA_TOOLS_PEERS_PYTORCH_EXPANDABLE_SEGMENT_H_

#include <cstddef>
#include <vector>

#include "strata/platform/device.h"
#include "strata/platform/memory_types.h"
#include "strata/platform/stream.h"

namespace strata::peers {

// A range of addresses, partly mapped to memory.
struct AddressRange {
  DevicePtr begin = 0;
  std::size_t bytes = 0;

  DevicePtr end() const { return begin + bytes; }
};

// An address range larger than the device. Physical memory is mapped granule by
// granule as needed.
//
// Errors: std::runtime_error if the device refuses a call for another reason
//   than lack of memory.
// Threads: externally synchronised.
// Source: pytorch.md §2.6.
class ExpandableSegment {
 public:
  // Each granule has a handle of `granule_bytes`.
  ExpandableSegment(Device& device, const Stream& stream,
                    std::size_t granule_bytes, std::size_t device_bytes);
  ExpandableSegment(const ExpandableSegment&) = delete;
  ExpandableSegment& operator=(const ExpandableSegment&) = delete;
  // Unmaps all granules, without waiting for the stream.
  ~ExpandableSegment();

  AddressRange range() const { return {begin_, reserved_bytes_}; }

  // Maps memory to the granules that `range` touches. They are unmapped, and
  // `range` begins at a granule. Returns the mapped range: empty if there is
  // not enough memory for all of it.
  AddressRange Map(AddressRange range);
  // Waits for the stream, then unmaps the granules that lie within `range`.
  // Returns the unmapped range: empty if there is no granule.
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
  std::vector<MemHandle> handles_;  // per granule; 0: none
  std::vector<bool> is_mapped_;     // per granule
};

}  // namespace strata::peers

#endif  // STRATA_TOOLS_PEERS_PYTORCH_EXPANDABLE_SEGMENT_H_
