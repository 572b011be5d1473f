#include "strata/strategy/virtual_memory/address_range.h"

#include <algorithm>
#include <new>

#include "strata/allocation/record_slab.h"
#include "strata/base/log.h"
#include "strata/base/size.h"

namespace strata {

std::unique_ptr<AddressRange> AddressRange::Reserve(
    Device& device, Place place, std::size_t bytes) noexcept {
  std::unique_ptr<AddressRange> range(new (std::nothrow) AddressRange(device));
  if (range == nullptr) return nullptr;
  range->pages_.reset(new (std::nothrow) PageHandle*[bytes / kPageBytes]());
  Block* const record = RecordSlab::Instance().Take();
  if (range->pages_ == nullptr || record == nullptr) {
    if (record != nullptr) RecordSlab::Instance().Give(record);
    return nullptr;
  }
  DevicePtr address = 0;
  if (device.ReserveRange(&address, bytes, kPageBytes, 0) != Status::kSuccess) {
    RecordSlab::Instance().Give(record);
    return nullptr;
  }
  record->data = reinterpret_cast<std::byte*>(address);
  record->size = bytes;
  record->set_place(place);
  range->memory = record->allocation();
  range->is_range = true;
  return range;
}

Status AddressRange::Free() noexcept {
  const Status status =
      device_.FreeRange(reinterpret_cast<DevicePtr>(begin()), size_bytes());
  if (status == Status::kSuccess) {
    RecordSlab::Instance().Give(memory->block());
    memory = nullptr;
  }
  return status;
}

AddressRange::~AddressRange() {
  if (memory == nullptr) return;
  STRATA_LOG(Error) << "virtual_memory: " << size_bytes()
                    << " bytes of addresses at " << static_cast<void*>(begin())
                    << " are lost";
  RecordSlab::Instance().Give(memory->block());
}

void AddressRange::SetHandle(const std::byte* base, std::size_t bytes,
                             PageHandle* handle) {
  std::fill_n(pages_.get() + PageOf(base), bytes / kPageBytes, handle);
}

std::byte* AddressRange::PageUp(std::byte* at) const {
  const auto offset = static_cast<std::size_t>(at - begin());
  return begin() + AlignUp(offset, kPageBytes);
}

std::byte* AddressRange::PageDown(std::byte* at) const {
  const auto offset = static_cast<std::size_t>(at - begin());
  return begin() + offset / kPageBytes * kPageBytes;
}

}  // namespace strata
