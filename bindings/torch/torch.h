#ifndef STRATA_BINDINGS_TORCH_TORCH_H_
#define STRATA_BINDINGS_TORCH_TORCH_H_

#include <cstddef>
#include <cstdint>

#include "strata/bindings/c/strata.h"

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

// A pool of PyTorch (MempoolId_t, a pair of integers), passed as PyTorch passes
// it.
struct strata_torch_pool {  // NOLINT(readability-identifier-naming)
  std::uint64_t first;
  std::uint64_t second;
};
// For set_begin_allocate_to_pool, which a capture calls before it begins: the
// next capture allocates from the pool, and its memory stays reserved until the
// pool is released. `filter` (PyTorch: a std::function, passed by address) is
// not used.
//
// A thread that announces a capture has ended the one that it announced before,
// also if that one failed.
//
// Errors: std::logic_error if another thread has announced a capture here that
//   has not ended, because PyTorch does not name the stream that it is about to
//   capture; also if STRATA_OPTIONS is wrong, or for lack of host memory.
STRATA_API void strata_torch_begin_pool(int device, strata_torch_pool pool,
                                        void* filter);
// For set_end_allocate_to_pool_fn, which a capture calls after its end.
STRATA_API void strata_torch_end_pool(int device, strata_torch_pool pool);
// For set_release_pool, which a graph calls when it is reset or destroyed:
// waits for the devices, then releases the memory. While a capture is announced
// here, the release waits for its end.
STRATA_API void strata_torch_release_pool(int device, strata_torch_pool pool);

// The facade behind these functions, for strata_stats_json,
// strata_capture_begin and other functions of the C ABI. The caller does not
// destroy it.
//
// Errors: null if STRATA_OPTIONS is wrong; strata_last_error() has the reason.
STRATA_API strata_facade* strata_torch_facade();

}  // extern "C"

#endif  // STRATA_BINDINGS_TORCH_TORCH_H_
