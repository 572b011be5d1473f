#include "strata/facade/usage_log.h"

#include <cstdint>

#include "strata/base/size.h"

namespace strata {
namespace {

// Rounded to the nearest tenth.
std::string InMebibytes(std::uint64_t bytes) {
  const std::uint64_t tenths =
      bytes / Mebibytes(1) * 10 +
      (bytes % Mebibytes(1) * 10 + Mebibytes(1) / 2) / Mebibytes(1);
  return std::to_string(tenths / 10) + "." + std::to_string(tenths % 10) +
         " MiB";
}

}  // namespace

std::string UsageLine(Place place, const Stats& stats, bool in_mebibytes) {
  const auto show = [in_mebibytes](std::uint64_t bytes) {
    return in_mebibytes ? InMebibytes(bytes) : std::to_string(bytes) + " bytes";
  };
  return ToString(place) + ": peak reserved " +
         show(stats.peak_reserved_bytes) + ", peak in use " +
         (stats.peak_in_use_is_bound ? "at most " : "") +
         show(stats.peak_in_use_bytes);
}

}  // namespace strata
