#ifndef STRATA_PLATFORM_SIM_STREAMS_RANDOM_H_
#define STRATA_PLATFORM_SIM_STREAMS_RANDOM_H_

#include <cstdint>

#include "strata/base/require_cxx20.h"

namespace strata::sim {

// Returns the next number of the sequence of `state`, and advances `state`. The
// sequence is the same on every machine. Any start value is valid.
//
// Source: splitmix64 (Steele, Lea, Flood: Fast splittable pseudorandom number
//   generators, 2014).
inline std::uint64_t NextRandom(std::uint64_t* state) {
  *state += 0x9E3779B97F4A7C15;
  std::uint64_t z = *state;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
  return z ^ (z >> 31);
}

}  // namespace strata::sim

#endif  // STRATA_PLATFORM_SIM_STREAMS_RANDOM_H_
