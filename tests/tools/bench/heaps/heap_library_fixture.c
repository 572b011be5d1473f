// Two libraries for `strata bench --bench_library`. STRATA_TEST_HEAP in the
// environment changes the behaviour: `refuse` and `empty` fail, and
// `legacy_stream` serves that stream only. Otherwise all requests are served.
// With STRATA_TEST_HEAP_IS_PARTIAL defined, the library lacks a function.
//
// Model: no memory is mapped behind a block, so every size succeeds. A block
//   that is freed in another stream than its own ends the process. Reserved
//   bytes are three times the live bytes. The counts restart at 0 when the
//   library is opened again.

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "strata/tools/bench/heaps/heap_library.h"

typedef struct {
  size_t bytes;
  void* stream;
} Block;

static atomic_uint_least64_t allocations;
static atomic_uint_least64_t live_bytes;
static atomic_uint_least64_t peak_live_bytes;

static int IsTold(const char* what) {
  const char* const told = getenv("STRATA_TEST_HEAP");
  return told != NULL && strcmp(told, what) == 0;
}

const char* strata_heap_open(void) {
  atomic_store(&allocations, 0);
  atomic_store(&live_bytes, 0);
  atomic_store(&peak_live_bytes, 0);
  return IsTold("refuse") ? "it was told to refuse" : NULL;
}

void* strata_heap_allocate(size_t bytes, void* stream) {
  if (IsTold("empty")) return NULL;
  if (stream != (void*)1 && IsTold("legacy_stream")) return NULL;
  Block* const block = malloc(sizeof(Block));
  if (block == NULL) return NULL;
  block->bytes = bytes;
  block->stream = stream;
  atomic_fetch_add(&allocations, 1);
  const uint_least64_t live = atomic_fetch_add(&live_bytes, bytes) + bytes;
  uint_least64_t peak = atomic_load(&peak_live_bytes);
  while (peak < live &&
         !atomic_compare_exchange_weak(&peak_live_bytes, &peak, live)) {
  }
  return block;
}

void strata_heap_free(void* memory, void* stream) {
  Block* const block = memory;
  if (block->stream != stream) {
    fputs("heap_library_fixture: freed in another stream\n", stderr);
    abort();
  }
  atomic_fetch_sub(&live_bytes, block->bytes);
  free(block);
}

uint64_t strata_heap_allocations(void) { return atomic_load(&allocations); }

#ifndef STRATA_TEST_HEAP_IS_PARTIAL
uint64_t strata_heap_peak_reserved_bytes(void) {
  return 3 * atomic_load(&peak_live_bytes);
}
#endif
