#include "strata/tools/bench/round_length.h"

#include <algorithm>

namespace strata::tools {

std::size_t PairsPerRound(BenchSubject& subject, const BenchScript& script,
                          std::chrono::nanoseconds round_time,
                          std::size_t most) {
  const std::size_t unit = script.is_uniform ? 1 : script.pairs();
  const std::size_t most_units = std::max<std::size_t>(most / unit, 1);
  for (std::size_t units = 1;; units = std::min(2 * units, most_units)) {
    const auto first = subject.Run(units * unit);
    const auto time = std::max(std::min(first, subject.Run(units * unit)),
                               std::chrono::nanoseconds(1));
    if (units < most_units && 2 * time < round_time) continue;
    const double affordable = static_cast<double>(units) *
                              static_cast<double>(round_time.count()) /
                              static_cast<double>(time.count());
    return unit * std::clamp<std::size_t>(static_cast<std::size_t>(affordable),
                                          1, most_units);
  }
}

}  // namespace strata::tools
