#ifndef STRATA_TOOLS_BENCH_HEAP_LIBRARY_H_
#define STRATA_TOOLS_BENCH_HEAP_LIBRARY_H_

// A C header: NOLINTBEGIN(modernize-deprecated-headers)

#include <stddef.h>
#include <stdint.h>

// What a shared library defines to be measured by `strata bench
// --bench_library=FILE`, as the allocator `library`: all five functions, in the
// C ABI, none of which lets an exception out.
//
// Threads: strata_heap_open is called once, before all others; allocate and
//   free are called from any thread, concurrently; the rest when no call is in
//   flight.
#ifdef __cplusplus
extern "C" {
#endif

// Null, or a static text that says why nothing can be allocated.
const char* strata_heap_open(void);
// Memory of the current device for use in `stream`, a driver's handle of it (1:
// the legacy stream, cudaStreamLegacy); null if there is none. Never for 0
// bytes.
void* strata_heap_allocate(size_t bytes, void* stream);
// `block` came from strata_heap_allocate, with the same stream.
void strata_heap_free(void* block, void* stream);
// Allocations served so far.
uint64_t strata_heap_allocations(void);
// The most bytes held from the driver at once.
uint64_t strata_heap_peak_reserved_bytes(void);

#ifdef __cplusplus
}
#endif

// NOLINTEND(modernize-deprecated-headers)

#endif  // STRATA_TOOLS_BENCH_HEAP_LIBRARY_H_
