#ifndef STRATA_PLATFORM_PLACE_H_
#define STRATA_PLATFORM_PLACE_H_

#include <bit>
#include <compare>
#include <cstdint>
#include <string>

#include "strata/base/require_cxx20.h"

namespace strata {

// The kinds of memory that Strata allocates.
enum class PlaceKind : std::uint16_t {
  kHost,     // pageable host memory
  kDevice,   // memory of one device
  kPinned,   // page-locked host memory, reachable by the devices
  kManaged,  // memory that migrates between the host and the devices
};

// The location of memory: a kind and an index. The index is the ordinal of the
// device. For kHost it is the NUMA node, or 0 where nodes are not
// distinguished.
//
// Model: a value of four bytes without padding, compared as one word. Ordered
//   by kind, then index.
struct Place {
  PlaceKind kind = PlaceKind::kHost;
  std::uint16_t index = 0;

  // One comparison of a word instead of two of the members.
  friend constexpr bool operator==(const Place& a, const Place& b) {
    return std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b);
  }
  friend auto operator<=>(const Place&, const Place&) = default;
};

constexpr Place HostPlace(int node = 0) {
  return Place{PlaceKind::kHost, static_cast<std::uint16_t>(node)};
}
constexpr Place DevicePlace(int device) {
  return Place{PlaceKind::kDevice, static_cast<std::uint16_t>(device)};
}
constexpr Place PinnedPlace(int device = 0) {
  return Place{PlaceKind::kPinned, static_cast<std::uint16_t>(device)};
}
constexpr Place ManagedPlace(int device) {
  return Place{PlaceKind::kManaged, static_cast<std::uint16_t>(device)};
}

// "host", "host:1", "device:0", "pinned:0", "managed:0".
std::string ToString(Place place);

// Parses the text that ToString(Place) writes. Returns false and leaves `place`
// unchanged if `text` is not a place.
bool ParsePlace(const std::string& text, Place* place);

}  // namespace strata

#endif  // STRATA_PLATFORM_PLACE_H_
