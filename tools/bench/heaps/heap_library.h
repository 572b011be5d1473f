#ifndef STRATA_TOOLS_BENCH_HEAPS_HEAP_LIBRARY_H_
#define STRATA_TOOLS_BENCH_HEAPS_HEAP_LIBRARY_H_

// A C header: NOLINTBEGIN(modernize-deprecated-headers)

#include <stddef.h>
#include <stdint.h>

// The functions that a shared library defines for `strata bench
// --bench_library=FILE`, as the allocator `library`: all five functions, in the
// C ABI. No function lets an exception out.
//
// Threads: strata_heap_open is called once, before all others. Allocate and
//   free are called from any thread, concurrently; the rest when no call is in
//   flight.
#ifdef __cplusplus
extern "C" {
#endif

// Null, or a static text with the reason why the library cannot allocate.
const char* strata_heap_open(void);
// Memory of the current device for use in `stream`, a handle of the driver (1:
// the legacy stream, cudaStreamLegacy). Null if there is no memory. Never
// called for 0 bytes.
void* strata_heap_allocate(size_t bytes, void* stream);
// `block` came from strata_heap_allocate, with the same stream.
void strata_heap_free(void* block, void* stream);
// Allocations served so far.
uint64_t strata_heap_allocations(void);
// The peak of the bytes held from the driver.
uint64_t strata_heap_peak_reserved_bytes(void);

#ifdef __cplusplus
}
#endif

// NOLINTEND(modernize-deprecated-headers)

#endif  // STRATA_TOOLS_BENCH_HEAPS_HEAP_LIBRARY_H_
