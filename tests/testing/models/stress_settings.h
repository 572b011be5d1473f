#ifndef STRATA_TESTS_TESTING_MODELS_STRESS_SETTINGS_H_
#define STRATA_TESTS_TESTING_MODELS_STRESS_SETTINGS_H_

#include <cctype>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <string>

namespace strata {

inline std::uint64_t NumberFromEnvironment(const char* name,
                                           std::uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text != nullptr && *text != '\0' ? std::stoull(text) : otherwise;
}

// The seed of every random choice: STRATA_STRESS_SEED, or 1.
inline std::uint64_t StressSeed() {
  return NumberFromEnvironment("STRATA_STRESS_SEED", 1);
}

// Number of operations of one test: STRATA_STRESS_OPERATIONS, or `otherwise`.
// Prints the settings of the test, so that a crash can be repeated too.
inline std::uint64_t StressOperations(std::uint64_t otherwise) {
  const std::uint64_t operations =
      NumberFromEnvironment("STRATA_STRESS_OPERATIONS", otherwise);
  std::cout << "  STRATA_STRESS_SEED=" << StressSeed()
            << " STRATA_STRESS_OPERATIONS=" << operations << std::endl;
  return operations;
}

// `options` as part of a test's name.
inline std::string NameOf(const std::string& options) {
  std::string name;
  for (const char c : options.empty() ? std::string("default") : options) {
    name += std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
  }
  return name;
}

}  // namespace strata

#endif  // STRATA_TESTS_TESTING_MODELS_STRESS_SETTINGS_H_
