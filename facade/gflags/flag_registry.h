#ifndef STRATA_FACADE_GFLAGS_FLAG_REGISTRY_H_
#define STRATA_FACADE_GFLAGS_FLAG_REGISTRY_H_

#include <string>

#include "strata/base/require_cxx20.h"

namespace strata {

// Whether RegisterFlags found the flag defined by the program.
bool IsFlagOfProgram(const std::string& name);

}  // namespace strata

#endif  // STRATA_FACADE_GFLAGS_FLAG_REGISTRY_H_
