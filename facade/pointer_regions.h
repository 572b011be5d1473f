#ifndef STRATA_FACADE_POINTER_REGIONS_H_
#define STRATA_FACADE_POINTER_REGIONS_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "strata/platform/require_cxx20.h"

namespace strata {

// The groups that may know the addresses of a region of 2 MiB, by their
// numbers: the group that last inserted there, and the groups that inserted
// before.
//
// Model: a map by region suffices, because each chunk belongs to a stream, few
//   chunks are smaller, and chunks seldom change streams. 128 GiB of
//   consecutive regions are distinguished; regions farther apart share an
//   entry. A group that inserted once remains among the groups that may know.
// Threads: any thread.
// Cost: one load. 128 KiB; two bytes per region, because a program may use many
//   regions in turn.
class PointerRegions {
 public:
  static constexpr std::uint8_t kNobody = 0;
  static constexpr std::uint8_t kMany = 255;

  struct Owners {
    std::uint8_t last = kNobody;    // kNobody: no insertion so far
    std::uint8_t before = kNobody;  // kNobody: no other; kMany: any group
  };

  Owners OwnersOf(const void* data) const noexcept {
    return OwnersIn(regions_[IndexOf(data)].load(std::memory_order_acquire));
  }
  // Call before the group `number`, neither kNobody nor kMany, inserts a
  // pointer.
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
