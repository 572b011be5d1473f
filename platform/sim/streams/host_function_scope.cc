#include "strata/platform/sim/streams/host_function_scope.h"

namespace strata::sim {

int& HostFunctionScope::Depth() {
  thread_local int depth = 0;
  return depth;
}

}  // namespace strata::sim
