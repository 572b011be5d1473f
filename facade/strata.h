#ifndef STRATA_FACADE_STRATA_H_
#define STRATA_FACADE_STRATA_H_

// The C ABI of Strata: an allocator facade behind plain functions.
//
// Model: a facade hands out memory per place and stream; see
//   strata/facade/allocator_facade.h for what it promises. A pointer belongs to
//   the facade that made it, until it is freed there. Streams are handles of
//   the driver (cudaStream_t, CUstream); NULL is the default stream of the
//   place.
// Errors: every function that can fail returns a strata_status. On any but
//   STRATA_OK nothing has changed and no out-parameter is written, unless its
//   comment says otherwise; strata_last_error() says what was wrong. No C++
//   exception leaves a function.
// Threads: every function from any thread, concurrently, but strata_destroy; no
//   other call with a pointer runs beside its free.
// Units: sizes and alignments in bytes.

// A C header: NOLINTBEGIN(modernize-deprecated-headers,modernize-use-using)
// NOLINTBEGIN(readability-identifier-naming)

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// Marks what the shared library exports.
#define STRATA_API __attribute__((visibility("default")))

#define STRATA_VERSION_MAJOR 0
#define STRATA_VERSION_MINOR 1
#define STRATA_VERSION_PATCH 0

// The numbers do not change between versions.
typedef enum strata_status {
  STRATA_OK = 0,
  // An argument, option, place or stream is wrong.
  STRATA_INVALID_ARGUMENT = 1,
  // The memory, or a limit on it, is exhausted; or the host has none left.
  STRATA_OUT_OF_MEMORY = 2,
  // A device call failed otherwise, or there is no device.
  STRATA_DEVICE_ERROR = 3,
  // Not a live pointer of this facade: it never was, or is freed already.
  STRATA_UNKNOWN_POINTER = 4,
  // The caller's buffer is too small.
  STRATA_SHORT_BUFFER = 5,
  // strata_destroy found pointers that had not been freed.
  STRATA_LIVE_POINTERS = 6,
  // A fault of Strata itself.
  STRATA_INTERNAL = 7
} strata_status;

typedef enum strata_place_kind {
  STRATA_HOST = 0,    // pageable host memory
  STRATA_DEVICE = 1,  // memory of one device
  STRATA_PINNED = 2,  // page-locked host memory
  STRATA_MANAGED = 3  // migrates between the host and the devices
} strata_place_kind;

// Where memory lives. `index` is the device's ordinal; 0 for STRATA_HOST.
typedef struct strata_place {
  int32_t kind;  // strata_place_kind
  int32_t index;
} strata_place;

typedef struct strata_facade strata_facade;

// The version of the library that is running: "0.1.0". Never NULL.
STRATA_API const char* strata_version(void);

// What the last failed call of this thread had to say; "" if none has failed.
// Never NULL; valid until the next call from this thread that fails, or until
// the thread ends: what its last destructors ask has less to say.
STRATA_API const char* strata_last_error(void);

// Builds a facade. `options` are names and values as in
// "allocator_strategy=auto_growth,strata_sim_memory=8GiB" (`strata info` lists
// them), separated by commas, semicolons or spaces; a value that holds one of
// those is written in single quotes. NULL or "": the defaults. Touches no
// device memory.
STRATA_API strata_status strata_create(const char* options,
                                       strata_facade** facade);

// Ends a facade: no other call may use it, now or later. Frees what is still
// allocated, as strata_free would, and destroys the streams that
// strata_stream_create made. NULL is ignored.
//
// Errors: STRATA_LIVE_POINTERS if something was still allocated, and the
//   message says how much. The facade and that memory are gone all the same.
STRATA_API strata_status strata_destroy(strata_facade* facade);

// At least `bytes` bytes at `place`, for use on `stream`. 0 bytes give
// STRATA_OK and a null pointer, which need not be freed.
STRATA_API strata_status strata_alloc(strata_facade* facade, strata_place place,
                                      size_t bytes, void* stream,
                                      void** pointer);
// The same at a multiple of `alignment`, a power of two up to 16 MiB (0: any).
STRATA_API strata_status strata_alloc_aligned(strata_facade* facade,
                                              strata_place place, size_t bytes,
                                              size_t alignment, void* stream,
                                              void** pointer);

// How memory is to be used; bits of strata_alloc_special's `use`.
typedef enum strata_use {
  // A handle of physical memory of its own, whole pages, which no other
  // allocation shares: for registration with a network card.
  STRATA_ONE_HANDLE = 1,
  // Memory that cudaIpcGetMemHandle knows.
  STRATA_LEGACY_IPC = 2
} strata_use;
// strata_alloc for such a use.
//
// Errors: STRATA_INVALID_ARGUMENT if the strategy of the place has no such
//   memory.
STRATA_API strata_status strata_alloc_special(strata_facade* facade,
                                              strata_place place, size_t bytes,
                                              uint32_t use, void* stream,
                                              void** pointer);

// Frees a pointer; work already submitted to its stream may still use it, and
// so may work in streams marked by strata_record_stream. NULL is ignored.
STRATA_API strata_status strata_free(strata_facade* facade, void* pointer);
// The same, if the last use was submitted to `stream` of any device.
STRATA_API strata_status strata_free_on(strata_facade* facade, void* pointer,
                                        void* stream);

// Notes that work submitted to `stream` uses the memory: it is not reused
// before that work is done. NULL is the default stream of the pointer's place
// (of device 0 for host memory); a handle may be of any device. A null pointer
// is ignored.
STRATA_API strata_status strata_record_stream(strata_facade* facade,
                                              void* pointer, void* stream);
// The same for a use that is over once `event`, a cudaEvent_t or what the
// device has, is: recorded by the caller on `stream` after that use. It
// replaces the note of that stream. The event may be recorded again, or
// destroyed, at once.
STRATA_API strata_status strata_record_use(strata_facade* facade, void* pointer,
                                           void* stream, void* event);
// Takes the note back: the caller has ordered that use himself.
STRATA_API strata_status strata_erase_stream(strata_facade* facade,
                                             void* pointer, void* stream);

// A new stream of `device`, which takes no part in the ordering of the legacy
// stream. For devices that the caller has no other way to: the simulated one.
STRATA_API strata_status strata_stream_create(strata_facade* facade,
                                              int32_t device, void** stream);
// Announces the end of a stream of strata_stream_create, and destroys it.
//
// Errors: the stream is still there, and may be destroyed by another call. With
//   STRATA_DEVICE_ERROR its end stays announced.
STRATA_API strata_status strata_stream_destroy(strata_facade* facade,
                                               int32_t device, void* stream);
// Announces the end of a stream that the caller destroys right after. Does not
// wait for its work. Its memory stays valid, and is freed as usual.
STRATA_API strata_status strata_stream_destroyed(strata_facade* facade,
                                                 int32_t device, void* stream);

// Announces that `stream` of `device`, which was seen by the facade before or
// is seen now, is about to be captured into a graph: what it and the streams
// that join the capture allocate comes from `*pool`, and stays there for the
// graph. A pool of 0, or below, is made, and `pool` gets its number; any number
// above 0 names a pool of the caller, which captures may share that come one
// after another. One more user of the pool, until strata_graph_pool_remove.
STRATA_API strata_status strata_capture_begin(strata_facade* facade,
                                              int32_t device, void* stream,
                                              int64_t* pool);
// The capture is over. `graph` (cudaGraph_t) keeps the pool from now on, with
// everything instantiated from it, until its last launch is over; call this
// before it is instantiated. NULL: the capture failed. Also with an error, the
// capture is over for the facade, unless there is no such pool. Call it before
// the pool's next capture is begun.
STRATA_API strata_status strata_capture_end(strata_facade* facade,
                                            int32_t device, int64_t pool,
                                            void* graph);
// One user of the pool less: the last one gives its memory back, once no graph
// keeps it.
STRATA_API strata_status strata_graph_pool_remove(strata_facade* facade,
                                                  int64_t pool);

// The addresses to register for a live pointer: all mapped as long as it lives.
STRATA_API strata_status strata_address_range(strata_facade* facade,
                                              void* pointer, void** base,
                                              size_t* bytes);

// A part of exported memory: `bytes` bytes at `offset` of a handle of
// `handle_bytes` bytes, for which the descriptor `fd` stands.
typedef struct strata_piece {
  int32_t fd;
  size_t handle_bytes;
  size_t offset;
  size_t bytes;
} strata_piece;
typedef struct strata_exported strata_exported;
typedef struct strata_imported strata_imported;

// Exports the handles behind a live pointer of virtual_memory. Another process
// that imports them sees all of each handle. The handles stay, and count as
// reserved, until strata_exported_close, also if the pointer is freed or the
// facade destroyed. `pieces` belong to `exported`, and so do their descriptors;
// send copies to other processes, in this order.
//
// Errors: STRATA_INVALID_ARGUMENT if the pointer lies in no such handle.
STRATA_API strata_status strata_export(strata_facade* facade, void* pointer,
                                       strata_exported** exported,
                                       const strata_piece** pieces,
                                       size_t* count);
// Ends the export: the importers have closed. NULL is ignored.
STRATA_API strata_status strata_exported_close(strata_exported* exported);
// Maps what another process has exported; `pointer` and `bytes` are those of
// the allocation. Descriptors stay the caller's, who may close them.
STRATA_API strata_status strata_import(strata_facade* facade,
                                       strata_place place,
                                       const strata_piece* pieces, size_t count,
                                       strata_imported** imported,
                                       void** pointer, size_t* bytes);
// Unmaps it: all work that uses it is done. NULL is ignored.
STRATA_API strata_status strata_imported_close(strata_imported* imported);

// Gives idle memory at `place` back to the system; `bytes` (may be NULL) gets
// how much.
STRATA_API strata_status strata_release(strata_facade* facade,
                                        strata_place place, size_t* bytes);

// Writes the statistics of every place as one JSON object, with a final NUL, to
// `buffer`, and its size with the NUL to `needed` (may be NULL).
//
// Errors: STRATA_SHORT_BUFFER if `capacity` is too small; `needed` is written
//   even then. `buffer` may be NULL if `capacity` is 0.
STRATA_API strata_status strata_stats_json(strata_facade* facade, char* buffer,
                                           size_t capacity, size_t* needed);

#ifdef __cplusplus
}
#endif

// NOLINTEND(readability-identifier-naming)
// NOLINTEND(modernize-deprecated-headers,modernize-use-using)

#endif  // STRATA_FACADE_STRATA_H_
