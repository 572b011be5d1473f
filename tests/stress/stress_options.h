#ifndef STRATA_TESTS_STRESS_STRESS_OPTIONS_H_
#define STRATA_TESTS_STRESS_STRESS_OPTIONS_H_

#include <cstdint>
#include <cstdlib>
#include <string>

namespace strata {

// The number in the environment variable `name`, else `otherwise`.
inline std::uint64_t NumberFromEnvironment(const char* name,
                                           std::uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text != nullptr ? std::stoull(text) : otherwise;
}

// Operations of all stress tests of a binary together.
inline std::uint64_t StressOperations() {
  return NumberFromEnvironment("STRATA_STRESS_OPERATIONS", 100'000);
}

inline std::uint64_t StressSeed() {
  return NumberFromEnvironment("STRATA_STRESS_SEED", 1);
}

}  // namespace strata

#endif  // STRATA_TESTS_STRESS_STRESS_OPTIONS_H_
