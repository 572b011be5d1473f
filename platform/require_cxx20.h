#ifndef STRATA_PLATFORM_REQUIRE_CXX20_H_
#define STRATA_PLATFORM_REQUIRE_CXX20_H_

// Every header that includes no other header of Strata includes this one, so a
// compiler for an older language says one thing and stops.

#if __cplusplus < 202002L
#error "Strata needs C++20: compile with -std=c++20 or newer"
// Not there: compilers go on after an #error, but not after this.
#include "strata/compile_with_std_cxx20"
#endif

#endif  // STRATA_PLATFORM_REQUIRE_CXX20_H_
