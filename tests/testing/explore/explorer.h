#ifndef STRATA_TESTS_TESTING_EXPLORE_EXPLORER_H_
#define STRATA_TESTS_TESTING_EXPLORE_EXPLORER_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "strata/tests/testing/explore/explored_program.h"

namespace strata {

struct Exploration {
  // Distinct states, the initial state included; states after the last step do
  // not count.
  std::uint64_t states = 0;
  std::uint64_t programs = 0;  // each run to its end
  std::uint64_t refusals = 0;  // refused requests, on a full device
  // The first, thus a shortest, program with a finding, and the finding. Empty
  // if there is none.
  std::string finding;
};

// Runs every program of up to `steps` steps after the common beginning. Of
// programs that lead to equal states, only the first one is continued. A real
// state cannot be copied, so each program runs from its beginning for each of
// its last steps.
//
// Model: breadth first, so each state is reached first with the most steps
//   left. Each program is finished and must leave nothing.
// Cost: about 100 us for each program.
Exploration Explore(const ExploreOptions& options, std::size_t steps);

// Runs every program of up to `steps` steps. Returns two programs that lead to
// equal states with different continuations; empty if there are none.
std::string DifferentFutures(const ExploreOptions& options, std::size_t steps);

}  // namespace strata

#endif  // STRATA_TESTS_TESTING_EXPLORE_EXPLORER_H_
