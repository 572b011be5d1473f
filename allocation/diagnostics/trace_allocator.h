#ifndef STRATA_ALLOCATION_DIAGNOSTICS_TRACE_ALLOCATOR_H_
#define STRATA_ALLOCATION_DIAGNOSTICS_TRACE_ALLOCATOR_H_

#include <cstddef>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <unordered_map>

#include "strata/allocation/decorator.h"
#include "strata/allocation/decorators/decorator_options.h"
#include "strata/base/clock.h"
#include "strata/base/recording_file.h"

namespace strata {

// The file that every Trace layer of a facade writes and `strata replay` reads:
// CSV with the columns Thread,Time,Action,Pointer,Size,Stream,Place.
//
// Model: Action is `allocate`, `allocate failure` (Pointer `(nil)`), `free`, or
//   `release` (the program returned the idle memory of the place to the system;
//   Pointer `(nil)`, Size and Stream 0). Size is the requested bytes. Stream is
//   the uid of the stream; 0: none. Time is hours:minutes:seconds:microseconds
//   of the clock; the hours may exceed a day. In the order of rows no address
//   is allocated before it was freed.
// Threads: any thread.
class TraceSink {
 public:
  // Creates or truncates the file. `clock` must outlive the sink.
  //
  // Errors: as RecordingFile.
  TraceSink(const std::string& path, const Clock& clock);

  // `data` is null for an allocation that failed.
  void Allocated(const void* data, std::size_t bytes, Stream stream,
                 Place place) noexcept;
  void Freed(const void* data, std::size_t bytes, Stream stream,
             Place place) noexcept;
  void Released(Place place) noexcept;

 private:
  void Row(const char* action, const void* data, std::size_t bytes,
           Stream stream, Place place) noexcept;

  const Clock& clock_;
  std::mutex mutex_;
  RecordingFile file_;  // guarded by mutex_
  // Small numbers for threads, in the order of their first row. Guarded by
  // mutex_.
  std::unordered_map<std::thread::id, int> threads_;
};

// Records every allocation and free in a TraceSink.
//
// Cost: a formatted row per call, under the lock of the sink.
class TraceAllocator final : public Decorator {
 public:
  TraceAllocator(std::shared_ptr<Allocator> underlying,
                 std::shared_ptr<TraceSink> sink);

  Allocation* TryAllocate(const Request& request,
                          Failure& failure) noexcept override;
  void DoFree(Allocation* allocation) noexcept override;
  const char* name() const override { return "trace"; }
  HitPath* hit_path() override { return nullptr; }

 private:
  std::shared_ptr<TraceSink> sink_;
};

// The sink that all chains of the facade write. Null if the options name no
// file.
//
// Errors: as RecordingFile, at the first call in a facade.
std::shared_ptr<TraceSink> TraceSinkOf(const DecoratorOptions& options,
                                       const ChainContext& context);

}  // namespace strata

#endif  // STRATA_ALLOCATION_DIAGNOSTICS_TRACE_ALLOCATOR_H_
