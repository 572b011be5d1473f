#ifndef STRATA_TESTS_TESTING_EXPLORER_H_
#define STRATA_TESTS_TESTING_EXPLORER_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "strata/tests/testing/explored_program.h"

namespace strata {

struct Exploration {
  // Told apart, the first one included; those after the last step are not.
  std::uint64_t states = 0;
  std::uint64_t programs = 0;  // run, each to its end
  std::uint64_t refusals = 0;  // of requests, on a full device
  // The first, and so a shortest, program with a finding, and what was found;
  // empty: none.
  std::string finding;
};

// Runs every program of up to `steps` steps after what all begin with, but of
// those that lead to states alike only the first one goes on. A real state
// cannot be copied, so a program is run from its beginning for each of its last
// steps.
//
// Model: breadth first, so that a state is met first with the most steps left.
//   Each program is ended and must leave nothing.
// Cost: the programs run, some 100 us each.
Exploration Explore(const ExploreOptions& options, std::size_t steps);

// Runs every program of up to `steps` steps, and says of two that lead to
// states alike, but can go on to different ones, what they are; empty: there
// are none.
std::string DifferentFutures(const ExploreOptions& options, std::size_t steps);

}  // namespace strata

#endif  // STRATA_TESTS_TESTING_EXPLORER_H_
