#ifndef STRATA_BASE_INITIAL_EXEC_H_
#define STRATA_BASE_INITIAL_EXEC_H_

#include "strata/base/require_cxx20.h"

// Marks a thread-local variable at a fixed distance from the thread pointer, so
// that no access is a call. nvcc warns about the attribute. The model that nvcc
// then compiles for reaches the same variable.
#ifdef __CUDACC__
#define STRATA_INITIAL_EXEC
#else
#define STRATA_INITIAL_EXEC [[gnu::tls_model("initial-exec")]]
#endif

#endif  // STRATA_BASE_INITIAL_EXEC_H_
