#include "strata/allocation/stats.h"

#include <algorithm>
#include <array>
#include <utility>

namespace strata {
namespace {

using Field = std::pair<const char*, std::uint64_t Stats::*>;

constexpr std::array<Field, 18> kSums = {{
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
    {"planned_hits", &Stats::planned_hits},
    {"splits", &Stats::splits},
    {"coalesces", &Stats::coalesces},
    {"chunks", &Stats::chunks},
    {"idle_bytes", &Stats::idle_bytes},
    {"free_blocks", &Stats::free_blocks},
    {"limit_bytes", &Stats::limit_bytes},
}};

}  // namespace

void Accumulate(Stats& to, const Stats& from) {
  for (const auto& [name, field] : kSums) {
    if (field != &Stats::limit_bytes) to.*field += from.*field;
  }
  to.largest_free_bytes =
      std::max(to.largest_free_bytes, from.largest_free_bytes);
}

std::string ToJson(const Stats& stats) {
  std::string json = "{";
  for (const auto& [name, field] : kSums) {
    json += std::string("\"") + name + "\":" + std::to_string(stats.*field);
    json += ",";
  }
  return json +
         "\"largest_free_bytes\":" + std::to_string(stats.largest_free_bytes) +
         "}";
}

}  // namespace strata
