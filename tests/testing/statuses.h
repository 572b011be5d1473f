#ifndef STRATA_TESTS_TESTING_STATUSES_H_
#define STRATA_TESTS_TESTING_STATUSES_H_

#include "strata/platform/status.h"

namespace strata {

// What most calls of a test are expected to return.
inline constexpr Status kOk = Status::kSuccess;
inline constexpr Status kBad = Status::kInvalidValue;

}  // namespace strata

#endif  // STRATA_TESTS_TESTING_STATUSES_H_
