#ifndef STRATA_STRATEGY_VIRTUAL_MEMORY_VMM_POLICY_H_
#define STRATA_STRATEGY_VIRTUAL_MEMORY_VMM_POLICY_H_

#include <cstddef>
#include <cstdint>

#include "strata/allocation/option_fields.h"

namespace strata {

// Options of virtual_memory; options.def describes each field.
struct VirtualMemoryOptions {
#define STRATA_OWN_OPTION STRATA_OPTION_FIELD
#include "strata/strategy/virtual_memory/options.def"
#undef STRATA_OWN_OPTION
};

// The sizes of virtual_memory: handles and address ranges; and the decision
// whether a growth moves free handles or creates new ones.
//
// Units: bytes.
// Source: memory_policy.md §3 (handle size by room), §4.3 and §9.1 (the dial).
class VmmPolicy {
 public:
  static constexpr std::size_t kSmallLimitBytes = std::size_t{256} << 10;

  // Errors: std::invalid_argument that names the invalid option.
  explicit VmmPolicy(const VirtualMemoryOptions& options);

  // The largest handle to create while the place can grow by `room` bytes, for
  // a growth that lacks `missing` bytes.
  std::size_t HandleBytes(std::size_t room, std::size_t missing) const;
  // Fewest bytes to create at the end of a range, with handles of
  // `handle_bytes`.
  static std::size_t QuantumBytes(std::size_t handle_bytes, std::size_t room,
                                  std::size_t reserved);
  // The next address range of an arena. The last one had `last_bytes` (0:
  // none); it must hold a block of `size`.
  static std::size_t RangeBytes(std::size_t device_bytes,
                                std::size_t last_bytes, std::size_t size,
                                bool is_small);
  static std::size_t LeastRangeBytes(std::size_t size);
  std::size_t most_address_bytes() const { return most_address_bytes_; }
  bool may_alias() const { return may_alias_; }

  // Memory of a stream: held bytes, and the peak of bytes in use at growths.
  struct Held {
    std::size_t reserved_bytes = 0;
    std::size_t peak_bytes = 0;
    // Since the peak rose last: bytes moved, and growths that moved some.
    std::size_t moved_bytes = 0;
    std::size_t moves = 0;
    // Since the peak rose last: bytes that the settled stream created while it
    // had lent some. A release starts the count again.
    std::size_t created_while_lent_bytes = 0;
  };
  // Whether a growth that lacks `missing` bytes moves free handles first.
  // `credit`: bytes that may be created for bytes moved before. A number of
  // --strata_vmm_remap acts as `lazy` with little room, and once settled.
  bool PrefersFree(std::size_t missing, std::size_t room, const Held& held,
                   std::size_t credit) const;
  // Whether a stream has moved enough since its peak rose;
  // docs/rules/virtual_memory.md.
  static bool IsSettled(const Held& held);
  // Whether a stream lends memory. A settled stream lends none once loans have
  // made it create memory.
  static bool MayLend(const Held& held);
  // Credit for moving `bytes`.
  std::size_t CreditFor(std::size_t bytes) const {
    return moved_per_created_ != 0 ? bytes / moved_per_created_ : 0;
  }
  // Credit used by creating `bytes`. The price rises when far more than the
  // peak is held.
  static std::size_t PriceOf(std::size_t bytes, const Held& held) {
    return IsAmple(held) ? bytes * kAmplePrice : bytes;
  }

 private:
  // Held bytes are ample above the peak plus this fraction of it;
  // docs/rules/virtual_memory.md.
  static constexpr std::size_t kAmpleDivisor = 16;
  static constexpr std::size_t kAmplePrice = 4;
  static bool IsAmple(const Held& held) {
    return held.reserved_bytes >
           held.peak_bytes + held.peak_bytes / kAmpleDivisor;
  }

  // docs/rules/virtual_memory.md has the reasons for these numbers.
  static constexpr std::size_t kMoveDivisor = 14;
  static constexpr double kMostMoved = 0.3;
  static constexpr std::size_t kLendingDivisor = 12;

  enum class Remap : std::uint8_t { kLazy, kTight, kDial };

  Remap remap_ = Remap::kDial;
  std::size_t moved_per_created_ = 0;  // With kDial.
  std::size_t most_handle_bytes_;
  std::size_t most_address_bytes_;
  bool may_alias_;
};

}  // namespace strata

#endif  // STRATA_STRATEGY_VIRTUAL_MEMORY_VMM_POLICY_H_
