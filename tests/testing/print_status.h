#ifndef STRATA_TESTS_TESTING_PRINT_STATUS_H_
#define STRATA_TESTS_TESTING_PRINT_STATUS_H_

#include <ostream>

#include "strata/platform/status.h"

namespace strata {

// Lets a failed expectation name the status.
inline void PrintTo(Status status, std::ostream* out) {
  *out << ToString(status);
}

}  // namespace strata

#endif  // STRATA_TESTS_TESTING_PRINT_STATUS_H_
