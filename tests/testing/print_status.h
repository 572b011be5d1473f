#ifndef STRATA_TESTS_TESTING_PRINT_STATUS_H_
#define STRATA_TESTS_TESTING_PRINT_STATUS_H_

#include <ostream>

#include "strata/platform/status.h"

namespace strata {

// What most calls of a test are expected to return.
inline constexpr Status kOk = Status::kSuccess;
inline constexpr Status kBad = Status::kInvalidValue;

// Lets a failed expectation name the status.
inline void PrintTo(Status status, std::ostream* out) {
  *out << ToString(status);
}

}  // namespace strata

#endif  // STRATA_TESTS_TESTING_PRINT_STATUS_H_
