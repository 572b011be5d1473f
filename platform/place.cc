#include "strata/platform/place.h"

#include <charconv>
#include <string_view>
#include <system_error>

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

bool ParseIndex(std::string_view text, std::uint16_t* index) {
  // Each number has one spelling, so that ToString returns the same text.
  if (text.size() > 1 && text.front() == '0') return false;
  const char* end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, *index);
  return parsed.ec == std::errc() && parsed.ptr == end;
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
    std::uint16_t index = 0;
    if (!ParseIndex(std::string_view(text).substr(row.prefix.size()), &index)) {
      return false;
    }
    const Place read{row.kind, index};
    if (read == HostPlace()) return false;  // written without its index
    *place = read;
    return true;
  }
  return false;
}

}  // namespace strata
