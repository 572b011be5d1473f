#ifndef STRATA_STRATEGY_CUDA_MALLOC_ASYNC_OPTIONS_H_
#define STRATA_STRATEGY_CUDA_MALLOC_ASYNC_OPTIONS_H_

#include "strata/allocation/option_fields.h"

namespace strata {

// Options of cuda_malloc_async; options.def describes each field.
struct CudaMallocAsyncOptions {
#define STRATA_OWN_OPTION STRATA_OPTION_FIELD
#include "strata/strategy/cuda_malloc_async/options.def"
#undef STRATA_OWN_OPTION
};

// Errors: std::invalid_argument that names the option.
void CheckCudaMallocAsyncOptions(const CudaMallocAsyncOptions& options);

}  // namespace strata

#endif  // STRATA_STRATEGY_CUDA_MALLOC_ASYNC_OPTIONS_H_
