#include "strata/tools/peers/pytorch/expandable_segment.h"

#include "strata/platform/calls/device_call.h"
#include "strata/tools/peers/peer.h"

namespace strata::peers {

ExpandableSegment::ExpandableSegment(Device& device, const Stream& stream,
                                     std::size_t granule_bytes,
                                     std::size_t device_bytes)
    : device_(device), stream_(stream), granule_bytes_(granule_bytes) {
  // An eighth more than the device has: room for unmapped ranges between mapped
  // ones.
  const std::size_t wanted = device_bytes + device_bytes / 8;
  const std::size_t granules = (wanted + granule_bytes - 1) / granule_bytes;
  reserved_bytes_ = granules * granule_bytes;
  RequireSuccess(device_.ReserveRange(&begin_, reserved_bytes_, 0, 0),
                 DeviceCall::kReserveRange);
}

ExpandableSegment::~ExpandableSegment() {
  // A failure shows as a leak of the device.
  for (std::size_t i = 0; i < handles_.size(); ++i) {
    if (is_mapped_[i]) {
      device_.UnmapRange(begin_ + i * granule_bytes_, granule_bytes_);
    }
    if (handles_[i].value != 0) device_.ReleaseMemory(handles_[i]);
  }
  device_.FreeRange(begin_, reserved_bytes_);
}

MemProperties ExpandableSegment::Properties() const {
  MemProperties properties;
  properties.location.id = device_.ordinal();
  return properties;
}

AddressRange ExpandableSegment::Map(AddressRange range) {
  const std::size_t first = (range.begin - begin_) / granule_bytes_;
  const std::size_t last =
      (range.end() - begin_ + granule_bytes_ - 1) / granule_bytes_;
  if (handles_.size() < last) {
    handles_.resize(last);
    is_mapped_.resize(last, false);
  }
  if (!Create(first, last)) return {range.begin, 0};
  MapGranules(first, last);
  return RangeOf(first, last);
}

bool ExpandableSegment::Create(std::size_t first, std::size_t last) {
  for (std::size_t i = first; i < last; ++i) {
    if (FoundMemory(
            device_.CreateMemory(&handles_[i], granule_bytes_, Properties()),
            DeviceCall::kCreateMemory)) {
      continue;
    }
    for (std::size_t made = first; made < i; ++made) {
      Release(made);
    }
    return false;
  }
  return true;
}

void ExpandableSegment::MapGranules(std::size_t first, std::size_t last) {
  for (std::size_t i = first; i < last; ++i) {
    RequireSuccess(device_.MapRange(begin_ + i * granule_bytes_, granule_bytes_,
                                    0, handles_[i]),
                   DeviceCall::kMapRange);
    is_mapped_[i] = true;
  }
  AccessDescriptor access;
  access.location.id = device_.ordinal();
  const AddressRange mapped = RangeOf(first, last);
  RequireSuccess(device_.SetAccess(mapped.begin, mapped.bytes, &access, 1),
                 DeviceCall::kSetAccess);
}

AddressRange ExpandableSegment::Unmap(AddressRange range) {
  const std::size_t first =
      (range.begin - begin_ + granule_bytes_ - 1) / granule_bytes_;
  const std::size_t last = (range.end() - begin_) / granule_bytes_;
  if (first >= last) return {range.begin, 0};
  // A free only means that the host no longer needs the block; kernels may
  // still run.
  RequireSuccess(device_.StreamSynchronize(stream_),
                 DeviceCall::kStreamSynchronize);
  for (std::size_t i = first; i < last; ++i) UnmapGranule(i);
  return RangeOf(first, last);
}

void ExpandableSegment::UnmapGranule(std::size_t granule) {
  RequireSuccess(
      device_.UnmapRange(begin_ + granule * granule_bytes_, granule_bytes_),
      DeviceCall::kUnmapRange);
  is_mapped_[granule] = false;
  Release(granule);
}

void ExpandableSegment::Release(std::size_t granule) {
  RequireSuccess(device_.ReleaseMemory(handles_[granule]),
                 DeviceCall::kReleaseMemory);
  handles_[granule] = {};
}

}  // namespace strata::peers
