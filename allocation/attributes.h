#ifndef STRATA_ALLOCATION_ATTRIBUTES_H_
#define STRATA_ALLOCATION_ATTRIBUTES_H_

#include <cstddef>
#include <cstdint>
#include <functional>

#include "strata/allocation/request.h"

namespace strata {

// Uses that memory must support, independent of the place. They select an
// allocator.
//
// Model: a set of bits and the number of a scope. A default object requires
//   nothing and selects device memory.
// Source: tf_bfc.md §2 (AllocatorAttributes).
class AllocatorAttributes {
 public:
  bool on_host() const { return Has(kOnHost); }
  // A network card reads and writes the memory.
  bool nic_compatible() const { return Has(kNicCompatible); }
  // Work on a GPU reads and writes the memory.
  bool gpu_compatible() const { return Has(kGpuCompatible); }
  // Eight bits with a meaning private to one kind of device.
  std::uint8_t device_bits() const {
    return static_cast<std::uint8_t>(bits_ >> kDeviceShift);
  }
  // Number of the scope; 0: no scope.
  int scope_id() const { return scope_id_; }

  AllocatorAttributes& set_on_host(bool on) { return Set(kOnHost, on); }
  AllocatorAttributes& set_nic_compatible(bool on) {
    return Set(kNicCompatible, on);
  }
  AllocatorAttributes& set_gpu_compatible(bool on) {
    return Set(kGpuCompatible, on);
  }
  AllocatorAttributes& set_device_bits(std::uint8_t bits);
  AllocatorAttributes& set_scope_id(int scope_id);

  // Adds the requirements of `other` to this object.
  //
  // Errors: std::invalid_argument if both name a scope and the scopes differ.
  //   Then nothing has changed.
  void Merge(const AllocatorAttributes& other);

  // True if memory that satisfies `other` satisfies this object too: its bits
  // are a subset of the bits of `other`. Scopes are not compared.
  bool IsEqualOrLessRestrictiveThan(const AllocatorAttributes& other) const {
    return (bits_ | other.bits_) == other.bits_;
  }

  friend bool operator==(const AllocatorAttributes&,
                         const AllocatorAttributes&) = default;

 private:
  static constexpr std::uint32_t kOnHost = 1U << 0;
  static constexpr std::uint32_t kNicCompatible = 1U << 1;
  static constexpr std::uint32_t kGpuCompatible = 1U << 2;
  static constexpr unsigned kDeviceShift = 24;

  bool Has(std::uint32_t bit) const { return (bits_ & bit) != 0; }
  AllocatorAttributes& Set(std::uint32_t bit, bool on) {
    bits_ = on ? bits_ | bit : bits_ & ~bit;
    return *this;
  }

  std::uint32_t bits_ = 0;
  int scope_id_ = 0;
};

// Options of one allocation.
struct AllocationAttributes {
  // Run the Reclaimer when memory is exhausted: release idle memory, call
  // callbacks, wait. False for a caller that has an alternative.
  bool retry_on_failure = true;
  // The caller records the allocation and its purpose in the allocation log;
  // the chain does not.
  bool allocation_will_be_logged = false;
  // Called before every attempt for the value of Request::freed_before; null:
  // any memory may be reused. Not owned. Must not throw.
  const std::function<std::uint64_t()>* freed_by = nullptr;
};

// Returns the request for `bytes` with these options.
Request ToRequest(std::size_t bytes, const AllocationAttributes& attributes);

}  // namespace strata

#endif  // STRATA_ALLOCATION_ATTRIBUTES_H_
