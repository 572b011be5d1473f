#include "strata/allocation/stats.h"

#include <algorithm>
#include <array>
#include <utility>

#include "strata/allocation/failure.h"

namespace strata {
namespace {

using Field = std::pair<const char*, std::uint64_t Stats::*>;

constexpr std::array<Field, 16> kSums = {{
    {"allocations", &Stats::allocations},
    {"frees", &Stats::frees},
    {"failures", &Stats::failures},
    {"requested_bytes", &Stats::requested_bytes},
    {"in_use_bytes", &Stats::in_use_bytes},
    {"peak_in_use_bytes", &Stats::peak_in_use_bytes},
    {"total_requested_bytes", &Stats::total_requested_bytes},
    {"reserved_bytes", &Stats::reserved_bytes},
    {"peak_reserved_bytes", &Stats::peak_reserved_bytes},
    {"cache_hits", &Stats::cache_hits},
    {"cache_misses", &Stats::cache_misses},
    {"splits", &Stats::splits},
    {"coalesces", &Stats::coalesces},
    {"chunks", &Stats::chunks},
    {"idle_bytes", &Stats::idle_bytes},
    {"free_blocks", &Stats::free_blocks},
}};
constexpr std::array<Field, 4> kOthers = {{
    {"limit_bytes", &Stats::limit_bytes},
    {"in_use_limit_bytes", &Stats::in_use_limit_bytes},
    {"reserved_limit_bytes", &Stats::reserved_limit_bytes},
    {"largest_free_bytes", &Stats::largest_free_bytes},
}};

std::string LimitsJson(const Stats& stats) {
  std::string json;
  const auto add = [&json](const std::string& flag, std::uint64_t bytes) {
    if (bytes == 0 || flag.empty()) return;
    json +=
        (json.empty() ? "\"" : ",\"") + flag + "\":" + std::to_string(bytes);
  };
  add(kInUseLimitFlag, stats.in_use_limit_bytes);
  add(stats.reserved_limit_flag, stats.reserved_limit_bytes);
  return "{" + json + "}";
}

}  // namespace

std::uint64_t SmallerLimit(std::uint64_t a, std::uint64_t b) {
  if (a == 0 || b == 0) return std::max(a, b);
  return std::min(a, b);
}

void LimitReserved(Stats& stats, std::uint64_t bytes, const char* flag) {
  const std::uint64_t smaller = SmallerLimit(stats.reserved_limit_bytes, bytes);
  if (smaller == stats.reserved_limit_bytes) return;
  stats.reserved_limit_bytes = smaller;
  stats.reserved_limit_flag = flag;
  stats.limit_bytes = SmallerLimit(stats.limit_bytes, bytes);
}

void LimitInUse(Stats& stats, std::uint64_t bytes) {
  stats.in_use_limit_bytes = SmallerLimit(stats.in_use_limit_bytes, bytes);
  stats.limit_bytes = SmallerLimit(stats.limit_bytes, bytes);
}

void Accumulate(Stats& to, const Stats& from) {
  to.peak_in_use_is_bound |=
      from.peak_in_use_is_bound ||
      (to.peak_in_use_bytes != 0 && from.peak_in_use_bytes != 0);
  for (const auto& [name, field] : kSums) to.*field += from.*field;
  to.largest_free_bytes =
      std::max(to.largest_free_bytes, from.largest_free_bytes);
}

std::string ToJson(const Stats& stats) {
  std::string json = "{";
  const auto add = [&](const auto& fields) {
    for (const auto& [name, field] : fields) {
      json += std::string("\"") + name + "\":" + std::to_string(stats.*field);
      json += ",";
    }
  };
  add(kSums);
  add(kOthers);
  return json + "\"peak_in_use_is_bound\":" +
         (stats.peak_in_use_is_bound ? "true" : "false") +
         ",\"limits\":" + LimitsJson(stats) + "}";
}

}  // namespace strata
