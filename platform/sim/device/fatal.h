#ifndef STRATA_PLATFORM_SIM_DEVICE_FATAL_H_
#define STRATA_PLATFORM_SIM_DEVICE_FATAL_H_

#include <cstdio>
#include <cstdlib>
#include <string>

#include "strata/base/require_cxx20.h"

namespace strata::sim {

// Writes "strata sim: <message>" to stderr and aborts. For errors of the
// calling code that no Status may hide.
[[noreturn]] inline void SimFatal(const std::string& message) {
  std::fprintf(stderr, "strata sim: %s\n", message.c_str());
  std::abort();
}

}  // namespace strata::sim

#endif  // STRATA_PLATFORM_SIM_DEVICE_FATAL_H_
