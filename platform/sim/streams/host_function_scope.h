#ifndef STRATA_PLATFORM_SIM_STREAMS_HOST_FUNCTION_SCOPE_H_
#define STRATA_PLATFORM_SIM_STREAMS_HOST_FUNCTION_SCOPE_H_

#include "strata/base/require_cxx20.h"

namespace strata::sim {

// During its life, the calling thread runs a function of a stream and may not
// call a device (cuda_semantics.md S11).
class HostFunctionScope {
 public:
  HostFunctionScope() { ++Depth(); }
  HostFunctionScope(const HostFunctionScope&) = delete;
  HostFunctionScope& operator=(const HostFunctionScope&) = delete;
  ~HostFunctionScope() { --Depth(); }

  static bool Active() { return Depth() > 0; }

 private:
  static int& Depth() {
    thread_local int depth = 0;
    return depth;
  }
};

}  // namespace strata::sim

#endif  // STRATA_PLATFORM_SIM_STREAMS_HOST_FUNCTION_SCOPE_H_
