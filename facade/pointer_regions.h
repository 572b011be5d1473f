#ifndef STRATA_FACADE_POINTER_REGIONS_H_
#define STRATA_FACADE_POINTER_REGIONS_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace strata {

// Whose addresses are: the number of a group for each region of 2 MiB, given
// by the first that is inserted there, for good.
//
// Model: by region, since chunks are a stream's own and few are smaller. So
//   many in a row, 128 GiB, are told apart; those further away share.
// Threads: any thread.
// Cost: one load. 64 KiB; bytes, because a program may use many regions in
// turn.
class PointerRegions {
 public:
  static constexpr std::uint8_t kNobody = 0;

  // kNobody: nothing was ever inserted in its region.
  std::uint8_t OwnerOf(const void* data) const noexcept {
    return owners_[IndexOf(data)].load(std::memory_order_acquire);
  }
  // Gives the region to `number` if it is nobody's; returns whose it is.
  std::uint8_t Settle(const void* data, std::uint8_t number) noexcept {
    std::uint8_t owner = kNobody;
    return owners_[IndexOf(data)].compare_exchange_strong(owner, number)
               ? number
               : owner;
  }

 private:
  static constexpr int kRegionBits = 21;
  static constexpr std::size_t kRegions = std::size_t{1} << 16;

  static std::size_t IndexOf(const void* data) {
    return (reinterpret_cast<std::uintptr_t>(data) >> kRegionBits) % kRegions;
  }

  std::array<std::atomic<std::uint8_t>, kRegions> owners_{};
};

}  // namespace strata

#endif  // STRATA_FACADE_POINTER_REGIONS_H_
