#ifndef STRATA_TESTS_TESTING_DEVICES_STATUSES_H_
#define STRATA_TESTS_TESTING_DEVICES_STATUSES_H_

#include "strata/platform/status.h"

namespace strata {

// The most frequent expected results of tests.
inline constexpr Status kOk = Status::kSuccess;
inline constexpr Status kBad = Status::kInvalidValue;

}  // namespace strata

#endif  // STRATA_TESTS_TESTING_DEVICES_STATUSES_H_
