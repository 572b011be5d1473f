#include "strata/platform/place.h"

#include <string_view>

#include "strata/base/parse_number.h"

namespace strata {
namespace {

struct Row {
  PlaceKind kind;
  std::string_view prefix;
};

constexpr std::string_view kHostText = "host";  // without index 0

constexpr Row kIndexed[] = {
    {PlaceKind::kHost, "host:"},
    {PlaceKind::kDevice, "device:"},
    {PlaceKind::kPinned, "pinned:"},
    {PlaceKind::kManaged, "managed:"},
};

std::optional<std::uint16_t> ParseIndex(std::string_view text) {
  // Each number has one spelling, so that ToString returns the same text.
  if (text.size() > 1 && text.front() == '0') return std::nullopt;
  return ParseNumber<std::uint16_t>(text);
}

}  // namespace

std::string ToString(Place place) {
  if (place == HostPlace()) return std::string(kHostText);
  for (const Row& row : kIndexed) {
    if (row.kind == place.kind) {
      return std::string(row.prefix) + std::to_string(place.index);
    }
  }
  return std::string(kHostText);
}

bool ParsePlace(const std::string& text, Place* place) {
  if (text == kHostText) {
    *place = HostPlace();
    return true;
  }
  for (const Row& row : kIndexed) {
    if (text.compare(0, row.prefix.size(), row.prefix) != 0) continue;
    const auto index =
        ParseIndex(std::string_view(text).substr(row.prefix.size()));
    if (!index) return false;
    const Place read{row.kind, *index};
    if (read == HostPlace()) return false;  // written without its index
    *place = read;
    return true;
  }
  return false;
}

}  // namespace strata
