#ifndef STRATA_ALLOCATION_ATTRIBUTES_H_
#define STRATA_ALLOCATION_ATTRIBUTES_H_

#include <cstddef>
#include <cstdint>
#include <functional>

#include "strata/allocation/request.h"

namespace strata {

// What memory must be good for, whatever place that makes it: which allocator
// to take.
//
// Model: a set of bits, and the number of a scope that only one party names.
//   The default asks for nothing: memory of the device.
// Source: tf_bfc.md §2 (AllocatorAttributes).
class AllocatorAttributes {
 public:
  bool on_host() const { return Has(kOnHost); }
  // A network card reads and writes it.
  bool nic_compatible() const { return Has(kNicCompatible); }
  // Work on a GPU reads and writes it.
  bool gpu_compatible() const { return Has(kGpuCompatible); }
  // Eight bits that mean something to one kind of device alone.
  std::uint8_t device_bits() const {
    return static_cast<std::uint8_t>(bits_ >> kDeviceShift);
  }
  // 0: no scope.
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

  // Asks for what `other` asks for as well.
  //
  // Errors: std::invalid_argument, and nothing has changed, if both name a
  //   scope and not the same one.
  void Merge(const AllocatorAttributes& other);

  // Whether memory that satisfies `other` satisfies this too: its bits are a
  // subset of the other's. Scopes are not compared.
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

// How one allocation is made.
//
// Source: tf_bfc.md R42 (AllocationAttributes).
struct AllocationAttributes {
  // Whether exhaustion is worth a reaction: giving idle memory back, callbacks,
  // waiting. Without, the caller has something else to try.
  bool retry_on_failure = true;
  // The caller records it in the allocation log, with what it is for; the chain
  // need not.
  bool allocation_will_be_logged = false;
  // Asked before every attempt for Request::freed_before; null: any memory will
  // do. Not owned, and must not throw.
  const std::function<std::uint64_t()>* freed_by = nullptr;
};

// The request for `bytes` made in this way.
Request ToRequest(std::size_t bytes, const AllocationAttributes& attributes);

}  // namespace strata

#endif  // STRATA_ALLOCATION_ATTRIBUTES_H_
