#ifndef STRATA_TESTS_STRATEGY_MEBIBYTE_H_
#define STRATA_TESTS_STRATEGY_MEBIBYTE_H_

#include <cstddef>

#include "strata/base/size.h"

namespace strata {

inline constexpr std::size_t kMiB = Mebibytes(1);

}  // namespace strata

#endif  // STRATA_TESTS_STRATEGY_MEBIBYTE_H_
