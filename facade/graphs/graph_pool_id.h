#ifndef STRATA_FACADE_GRAPHS_GRAPH_POOL_ID_H_
#define STRATA_FACADE_GRAPHS_GRAPH_POOL_ID_H_

#include <cstdint>

#include "strata/base/require_cxx20.h"

namespace strata {

// Names a pool of memory for graphs. Chosen by the caller, above 0 and below
// 2^32; or assigned, and then unique in the process.
using GraphPoolId = std::int64_t;

}  // namespace strata

#endif  // STRATA_FACADE_GRAPHS_GRAPH_POOL_ID_H_
