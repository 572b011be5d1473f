#ifndef STRATA_FACADE_BINDINGS_TORCH_TORCH_H_
#define STRATA_FACADE_BINDINGS_TORCH_TORCH_H_

#include <cstddef>

#include "strata/facade/strata.h"

// The functions that PyTorch finds by name in libstrata.so: see
// docs/guide/from_pytorch.md.
//
// Model: the process has one facade for them. The first call builds it from the
//   environment variable STRATA_OPTIONS, an option string as in strata_create.
//   It is never destroyed, as PyTorch frees tensors until the process ends. A
//   null stream is the legacy stream of the device.
// Errors: an allocation throws, because PyTorch takes null for a tensor:
//   std::bad_alloc with the text of OutOfMemory if memory or a limit is
//   exhausted; std::invalid_argument if STRATA_OPTIONS is wrong; else
//   std::runtime_error. Then nothing has changed. The functions for frees,
//   streams and caches log their errors.
// Threads: any thread.
// Source: pytorch.md §4.1, §4.2.
extern "C" {

// For torch.cuda.memory.CUDAPluggableAllocator: `bytes` bytes of `device`, for
// use on `stream`. Null for 0 bytes.
STRATA_API void* strata_torch_malloc(std::size_t bytes, int device,
                                     void* stream);
// For torch.cuda.MemPool: as strata_torch_malloc, but null if memory or a limit
// is exhausted. PyTorch then releases its idle segments and asks again.
STRATA_API void* strata_torch_pool_malloc(std::size_t bytes, int device,
                                          void* stream);
// Frees memory of the functions above, in the order of the stream that it was
// allocated for. Null is ignored.
STRATA_API void strata_torch_free(void* pointer, std::size_t bytes, int device,
                                  void* stream);
// For set_record_stream_fn: work submitted to `stream` uses the memory.
STRATA_API void strata_torch_record_stream(void* pointer, void* stream);
// For set_reset_fn, which torch.cuda.empty_cache() calls: releases the idle
// memory of every device.
STRATA_API void strata_torch_empty_cache();

// The facade behind these functions, for strata_stats_json,
// strata_capture_begin and other functions of the C ABI. The caller does not
// destroy it.
//
// Errors: null if STRATA_OPTIONS is wrong; strata_last_error() has the reason.
STRATA_API strata_facade* strata_torch_facade();

}  // extern "C"

#endif  // STRATA_FACADE_BINDINGS_TORCH_TORCH_H_
