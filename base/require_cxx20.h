#ifndef STRATA_BASE_REQUIRE_CXX20_H_
#define STRATA_BASE_REQUIRE_CXX20_H_

// Every header that includes no other header of Strata includes this one, so
// that a compiler for an older language prints one error and stops.

#if __cplusplus < 202002L
#error "Strata needs C++20: compile with -std=c++20 or newer"
// This file does not exist: compilers continue after an #error, but not after a
// missing include.
#include "strata/compile_with_std_cxx20"
#endif

#endif  // STRATA_BASE_REQUIRE_CXX20_H_
