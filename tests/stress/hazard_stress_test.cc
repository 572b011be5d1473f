// The checker compared with brute force, for any duration.

#include <gtest/gtest.h>

#include <cstdint>

#include "strata/tests/testing/hazards/hazard_program.h"
#include "strata/tests/testing/hazards/hazard_verdict.h"
#include "strata/tests/testing/models/stress_settings.h"

namespace strata {
namespace {

// T84
TEST(HazardStressTest, VerdictsAreThoseOfBruteForce) {
  const std::uint64_t operations = StressOperations(50'000);
  std::uint64_t seed = StressSeed() << 32;
  for (std::uint64_t done = 0; done < operations;) {
    ++seed;
    const auto program =
        MakeRandomProgram(seed, 20 + static_cast<int>(seed % 150));
    done += program.size();
    ASSERT_EQ(VerdictDifference(program), "") << "program " << seed;
  }
}

}  // namespace
}  // namespace strata
