#ifndef STRATA_BINDINGS_C_STRATA_H_
#define STRATA_BINDINGS_C_STRATA_H_

// The C ABI of Strata: an allocator facade behind plain functions.
//
// Model: a facade allocates memory per place and stream;
//   strata/facade/allocator_facade.h is its contract. A pointer belongs to the
//   facade that allocated it, until it is freed there. Streams are handles of
//   the driver (cudaStream_t, CUstream); NULL is the default stream of the
//   place.
// Errors: every function that can fail returns a strata_status. On any status
//   except STRATA_OK nothing has changed and no out-parameter is written,
//   unless the function's comment says otherwise. strata_last_error() returns
//   the message. No C++ exception leaves a function.
// Threads: every function may be called from any thread, concurrently, except
//   strata_destroy. No other call with a pointer may run concurrently with its
//   free.
// Units: sizes and alignments in bytes.

// A C header: NOLINTBEGIN(modernize-deprecated-headers,modernize-use-using)
// NOLINTBEGIN(readability-identifier-naming)

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// Marks symbols that the shared library exports.
#define STRATA_API __attribute__((visibility("default")))

#define STRATA_VERSION_MAJOR 0
#define STRATA_VERSION_MINOR 1
#define STRATA_VERSION_PATCH 0

// The numbers do not change between versions.
typedef enum strata_status {
  STRATA_OK = 0,
  // An argument, option, place or stream is wrong.
  STRATA_INVALID_ARGUMENT = 1,
  // The memory, or a limit on it, is exhausted; or the host has no memory left.
  STRATA_OUT_OF_MEMORY = 2,
  // Another device call failed, or there is no device.
  STRATA_DEVICE_ERROR = 3,
  // Not a live pointer of this facade: never allocated there, or freed already.
  STRATA_UNKNOWN_POINTER = 4,
  // The caller's buffer is too small.
  STRATA_SHORT_BUFFER = 5,
  // strata_destroy found pointers that were not freed.
  STRATA_LIVE_POINTERS = 6,
  // An internal error of Strata.
  STRATA_INTERNAL = 7
} strata_status;

typedef enum strata_place_kind {
  STRATA_HOST = 0,    // pageable host memory
  STRATA_DEVICE = 1,  // memory of one device
  STRATA_PINNED = 2,  // page-locked host memory
  STRATA_MANAGED = 3  // migrates between the host and the devices
} strata_place_kind;

// A place for memory. `index` is the device's ordinal; 0 for STRATA_HOST.
typedef struct strata_place {
  int32_t kind;  // strata_place_kind
  int32_t index;
} strata_place;

typedef struct strata_facade strata_facade;

// The version of the library that is running: "0.1.0". Never NULL.
STRATA_API const char* strata_version(void);

// The message of the last failed call of this thread; "" if none has failed.
// Never NULL. Valid until the next call of this thread that fails, or until the
// thread ends.
STRATA_API const char* strata_last_error(void);

// Creates a facade. `options` holds names and values as in
// "allocator_strategy=auto_growth,strata_sim_memory=8GiB" (`strata info` lists
// them), separated by commas, semicolons or spaces. A value that contains a
// separator is written in single quotes. NULL or "": the defaults. Allocates no
// device memory.
STRATA_API strata_status strata_create(const char* options,
                                       strata_facade** facade);

// Destroys a facade: no other call may use it, now or later. Frees all memory
// that is still allocated, as strata_free would, and destroys the streams that
// strata_stream_create made. NULL is ignored.
//
// Errors: STRATA_LIVE_POINTERS if memory was still allocated; the message says
//   how much. The facade is destroyed and the memory is freed even then.
STRATA_API strata_status strata_destroy(strata_facade* facade);

// Allocates at least `bytes` bytes at `place`, for use on `stream`. 0 bytes:
// returns STRATA_OK and a null pointer, which need not be freed.
STRATA_API strata_status strata_alloc(strata_facade* facade, strata_place place,
                                      size_t bytes, void* stream,
                                      void** pointer);
// strata_alloc at a multiple of `alignment`, a power of two up to 16 MiB (0:
// any).
STRATA_API strata_status strata_alloc_aligned(strata_facade* facade,
                                              strata_place place, size_t bytes,
                                              size_t alignment, void* stream,
                                              void** pointer);

// The intended use of the memory; bits of the parameter `use` of
// strata_alloc_special.
typedef enum strata_use {
  // A separate handle of physical memory, in whole pages, that no other
  // allocation shares. For registration with a network card.
  STRATA_ONE_HANDLE = 1,
  // Memory that cudaIpcGetMemHandle accepts.
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

// Frees a pointer. Work that was already submitted to its stream, or to streams
// marked by strata_record_stream, may still use the memory. NULL is ignored.
STRATA_API strata_status strata_free(strata_facade* facade, void* pointer);
// strata_free, if the last use was submitted to `stream`, of any device.
STRATA_API strata_status strata_free_on(strata_facade* facade, void* pointer,
                                        void* stream);

// Records that work submitted to `stream` uses the memory. The memory is not
// reused before that work completes. NULL is the default stream of the
// pointer's place (of device 0 for host memory). The handle may be of any
// device. A null pointer is ignored.
STRATA_API strata_status strata_record_stream(strata_facade* facade,
                                              void* pointer, void* stream);
// Like strata_record_stream, for a use that is complete when `event` is.
// `event` is a cudaEvent_t, or the event type of the device. The caller
// recorded it on `stream` after that use. Replaces the record of that stream.
// The event may be recorded again, or destroyed, at once.
STRATA_API strata_status strata_record_use(strata_facade* facade, void* pointer,
                                           void* stream, void* event);
// Removes the record of `stream`: the caller has ordered that use.
STRATA_API strata_status strata_erase_stream(strata_facade* facade,
                                             void* pointer, void* stream);

// Creates a stream of `device` that does not synchronize with the legacy
// stream. For devices on which the caller cannot create streams otherwise: the
// simulated device.
STRATA_API strata_status strata_stream_create(strata_facade* facade,
                                              int32_t device, void** stream);
// Announces the end of a stream of strata_stream_create, and destroys it.
//
// Errors: the stream still exists, and another call may destroy it. After
//   STRATA_DEVICE_ERROR its end remains announced.
STRATA_API strata_status strata_stream_destroy(strata_facade* facade,
                                               int32_t device, void* stream);
// Announces the end of a stream that the caller destroys immediately
// afterwards. Does not wait for its work. Its memory remains valid, and is
// freed as usual.
STRATA_API strata_status strata_stream_destroyed(strata_facade* facade,
                                                 int32_t device, void* stream);

// From now on the facade inserts no wait into `stream`, and no wait for its
// work into other streams, until strata_stream_destroyed. A request that needs
// memory of such work at once waits on the host. For streams of
// collectives, which all ranks must run in one order. Call it before the stream
// uses memory.
STRATA_API strata_status strata_stream_forbid_waits(strata_facade* facade,
                                                    int32_t device,
                                                    void* stream);

// Announces that `stream` of `device` is about to be captured into a graph. The
// facade looks the stream up if it has not seen it before. Memory that the
// stream, and the streams that join the capture, allocate comes from `*pool`
// and remains reserved for the graph. If `*pool` is 0 or less, creates a pool
// and sets `*pool` to its number. Any number above 0 names a pool of the
// caller. Captures may share a pool if they run one after another. Adds a user
// to the pool, until strata_graph_pool_remove.
STRATA_API strata_status strata_capture_begin(strata_facade* facade,
                                              int32_t device, void* stream,
                                              int64_t* pool);
// Announces that the capture has ended. From now on `graph` (cudaGraph_t), with
// all its instances, holds the pool until its last launch completes. Call this
// before the graph is instantiated, and before the pool's next capture begins.
// NULL: the capture failed. The facade ends the capture even if it returns an
// error, unless there is no such pool.
STRATA_API strata_status strata_capture_end(strata_facade* facade,
                                            int32_t device, int64_t pool,
                                            void* graph);
// Removes a user of the pool. The last one releases its memory, once no graph
// holds the pool.
STRATA_API strata_status strata_graph_pool_remove(strata_facade* facade,
                                                  int64_t pool);

// The addresses to register for a live pointer. All of them are mapped as long
// as the pointer lives.
STRATA_API strata_status strata_address_range(strata_facade* facade,
                                              void* pointer, void** base,
                                              size_t* bytes);

// A part of exported memory: `bytes` bytes at `offset` of a handle of
// `handle_bytes` bytes. The descriptor `fd` stands for the handle.
typedef struct strata_piece {
  int32_t fd;
  size_t handle_bytes;
  size_t offset;
  size_t bytes;
} strata_piece;
typedef struct strata_exported strata_exported;
typedef struct strata_imported strata_imported;

// Exports the handles behind a live pointer of virtual_memory. Another process
// that imports them sees all bytes of each handle. The handles remain, and
// count as reserved, until strata_exported_close, even if the pointer is freed
// or the facade destroyed. `exported` owns `pieces` and their descriptors; send
// copies to other processes, in this order.
//
// Errors: STRATA_INVALID_ARGUMENT if the pointer lies in no such handle.
STRATA_API strata_status strata_export(strata_facade* facade, void* pointer,
                                       strata_exported** exported,
                                       const strata_piece** pieces,
                                       size_t* count);
// Ends the export. The importers must have closed it before. NULL is ignored.
STRATA_API strata_status strata_exported_close(strata_exported* exported);
// Maps memory that another process has exported. `pointer` and `bytes` return
// the address and size of the exported allocation in this process. The caller
// owns the descriptors, and may close them.
STRATA_API strata_status strata_import(strata_facade* facade,
                                       strata_place place,
                                       const strata_piece* pieces, size_t count,
                                       strata_imported** imported,
                                       void** pointer, size_t* bytes);
// Unmaps the memory. All work that uses it must be complete. NULL is ignored.
STRATA_API strata_status strata_imported_close(strata_imported* imported);

// Releases idle memory at `place` to the system. `bytes` (may be NULL) returns
// the bytes released.
STRATA_API strata_status strata_release(strata_facade* facade,
                                        strata_place place, size_t* bytes);

// Writes the statistics of every place as one JSON object, with a final NUL, to
// `buffer`, and its size with the NUL to `needed` (may be NULL).
//
// Errors: STRATA_SHORT_BUFFER if `capacity` is too small; `needed` is written
//   even then. `buffer` may be NULL if `capacity` is 0.
STRATA_API strata_status strata_stats_json(strata_facade* facade, char* buffer,
                                           size_t capacity, size_t* needed);

typedef enum strata_log_severity {
  STRATA_LOG_INFO = 0,
  STRATA_LOG_WARNING = 1,
  STRATA_LOG_ERROR = 2,
  STRATA_LOG_FATAL = 3  // the process ends after the callback
} strata_log_severity;

// Receives one message. `severity` is a strata_log_severity. `file` and `line`
// name the place in the source. The texts are valid until the callback returns.
typedef void (*strata_log_callback)(void* context, int32_t severity,
                                    const char* file, int32_t line,
                                    const char* message);

// Passes the messages of all facades to `callback`, with `context`. NULL
// restores the default: the messages go to glog. Several threads may execute
// the callback at the same time. It may call this library, and must not throw
// or jump out. After this call no other thread executes the previous callback.
STRATA_API strata_status strata_set_log_callback(strata_log_callback callback,
                                                 void* context);

#ifdef __cplusplus
}
#endif

// NOLINTEND(readability-identifier-naming)
// NOLINTEND(modernize-deprecated-headers,modernize-use-using)

#endif  // STRATA_BINDINGS_C_STRATA_H_
