#ifndef STRATA_FACADE_POINTER_REGIONS_H_
#define STRATA_FACADE_POINTER_REGIONS_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "strata/platform/require_cxx20.h"

namespace strata {

// Which groups may know the addresses of a region of 2 MiB, by their numbers:
// the one that inserted there last, and whoever did before.
//
// Model: by region, since chunks are a stream's own, few are smaller, and one
//   that changes streams does so seldom. So many in a row, 128 GiB, are told
//   apart; those further away share. Who inserted once stays among those that
//   may know.
// Threads: any thread.
// Cost: one load. 128 KiB; two bytes each, because a program may use many
//   regions in turn.
class PointerRegions {
 public:
  static constexpr std::uint8_t kNobody = 0;
  static constexpr std::uint8_t kMany = 255;

  struct Owners {
    std::uint8_t last = kNobody;    // kNobody: nothing was ever inserted
    std::uint8_t before = kNobody;  // kNobody: no other; kMany: any
  };

  Owners OwnersOf(const void* data) const noexcept {
    return OwnersIn(regions_[IndexOf(data)].load(std::memory_order_acquire));
  }
  // Before something is inserted by the group `number`, neither kNobody nor
  // kMany.
  void Settle(const void* data, std::uint8_t number) noexcept {
    std::atomic<std::uint16_t>& region = regions_[IndexOf(data)];
    std::uint16_t owners = region.load();
    while (!region.compare_exchange_weak(
        owners, BitsOf(Joined(OwnersIn(owners), number)))) {
    }
  }

 private:
  static constexpr int kRegionBits = 21;
  static constexpr std::size_t kRegions = std::size_t{1} << 16;

  static std::size_t IndexOf(const void* data) {
    return (reinterpret_cast<std::uintptr_t>(data) >> kRegionBits) % kRegions;
  }
  static Owners OwnersIn(std::uint16_t bits) {
    return {static_cast<std::uint8_t>(bits & 0xff),
            static_cast<std::uint8_t>(bits >> 8)};
  }
  static std::uint16_t BitsOf(Owners owners) {
    return static_cast<std::uint16_t>(owners.last | owners.before << 8);
  }
  static Owners Joined(Owners owners, std::uint8_t number) {
    if (owners.last == number) return owners;
    const bool is_known = owners.before == kNobody || owners.before == number;
    return {number, is_known ? owners.last : kMany};
  }

  std::array<std::atomic<std::uint16_t>, kRegions> regions_{};
};

}  // namespace strata

#endif  // STRATA_FACADE_POINTER_REGIONS_H_
