#include "strata/allocation/attributes.h"

#include <stdexcept>
#include <string>

namespace strata {

AllocatorAttributes& AllocatorAttributes::set_device_bits(std::uint8_t bits) {
  constexpr std::uint32_t kOthers = (1U << kDeviceShift) - 1;
  bits_ = (bits_ & kOthers) | (std::uint32_t{bits} << kDeviceShift);
  return *this;
}

AllocatorAttributes& AllocatorAttributes::set_scope_id(int scope_id) {
  scope_id_ = scope_id;
  return *this;
}

void AllocatorAttributes::Merge(const AllocatorAttributes& other) {
  if (scope_id_ != other.scope_id_ && scope_id_ != 0 && other.scope_id_ != 0) {
    throw std::invalid_argument(
        "attributes of scope " + std::to_string(other.scope_id_) +
        " cannot be merged into those of scope " + std::to_string(scope_id_));
  }
  bits_ |= other.bits_;
  if (scope_id_ == 0) scope_id_ = other.scope_id_;
}

Request ToRequest(std::size_t bytes, const AllocationAttributes& attributes) {
  Request request;
  request.bytes = bytes;
  if (!attributes.retry_on_failure) request.flags |= kNoRetry;
  if (attributes.allocation_will_be_logged) request.flags |= kWillBeLogged;
  request.freed_by = attributes.freed_by;
  return request;
}

}  // namespace strata
