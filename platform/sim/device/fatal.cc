#include "strata/platform/sim/device/fatal.h"

#include <cstdio>
#include <cstdlib>

namespace strata::sim {

void SimFatal(const std::string& message) {
  std::fprintf(stderr, "strata sim: %s\n", message.c_str());
  std::abort();
}

}  // namespace strata::sim
