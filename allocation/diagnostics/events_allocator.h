#ifndef STRATA_ALLOCATION_DIAGNOSTICS_EVENTS_ALLOCATOR_H_
#define STRATA_ALLOCATION_DIAGNOSTICS_EVENTS_ALLOCATOR_H_

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "strata/allocation/decorator.h"
#include "strata/base/clock.h"
#include "strata/base/recording_file.h"

namespace strata {

// Numbers in an event in addition to the allocation. Bytes.
struct MemoryLevels {
  const char* allocator_name = "";  // of the strategy
  std::uint64_t reserved_bytes = 0;
  std::uint64_t limit_bytes = 0;  // 0: none
  double fragmentation = -1;  // of the free bytes of the strategy; -1: unknown
};

// The file that every Events layer of a facade writes: Chrome trace events, for
// chrome://tracing and Perfetto.
//
// Model: instants `MemoryAllocation` and `MemoryDeallocation` with the known
//   fields of TensorFlow's events:
//     allocator_name, place, addr, requested_bytes, allocation_bytes
//     id                    the same for both events of an allocation
//     bytes_allocated, peak_bytes_in_use   live blocks of the place, this
//                           event included
//     bytes_reserved        held from the system
//     bytes_available       limit minus bytes_allocated; absent if no limit
//     fragmentation         absent if unknown
//     op, step              of the calling thread (annotation.h); absent if
//     none
//   In the order of events no address is allocated before it was freed. The
//   file is complete after the sink is destroyed; viewers can also read it
//   before.
// Units: bytes; `ts` in microseconds of the clock.
// Threads: any thread.
// Source: tf_bfc.md R56; "Trace Event Format", instant events.
class EventSink {
 public:
  // Creates or truncates the file. `clock` must outlive the sink.
  //
  // Errors: as RecordingFile.
  EventSink(const std::string& path, const Clock& clock);
  EventSink(const EventSink&) = delete;
  EventSink& operator=(const EventSink&) = delete;
  ~EventSink();

  // Call Allocated() after the allocation and Freed() before the free. If the
  // host has no memory to store the id of an allocation, its event is lost and
  // counted.
  void Allocated(const Allocation& allocation,
                 const MemoryLevels& levels) noexcept;
  void Freed(const Allocation& allocation, const MemoryLevels& levels) noexcept;

 private:
  struct PlaceUse {
    Place place;
    std::uint64_t in_use_bytes = 0;
    std::uint64_t peak_bytes = 0;
  };

  // The functions below need mutex_.
  PlaceUse& UseOf(Place place);
  void Write(const char* name, std::uint64_t id, const Allocation& allocation,
             const PlaceUse& use, const MemoryLevels& levels) noexcept;
  void WriteAnnotation() noexcept;

  const Clock& clock_;
  const int process_;  // process id
  std::mutex mutex_;
  RecordingFile file_;         // guarded by mutex_
  bool is_first_ = true;       // guarded by mutex_
  std::uint64_t next_id_ = 1;  // guarded by mutex_
  // Ids of live allocations. Guarded by mutex_.
  std::unordered_map<const Allocation*, std::uint64_t> ids_;
  std::vector<PlaceUse> uses_;  // guarded by mutex_
};

// Records every allocation and free in an EventSink.
//
// Cost: a formatted event per call, under the lock of the sink, and the
//   statistics of the strategy and the chunk pool.
class EventsAllocator final : public Decorator {
 public:
  EventsAllocator(std::shared_ptr<Allocator> underlying,
                  std::shared_ptr<EventSink> sink);

  Allocation* TryAllocate(const Request& request,
                          Failure& failure) noexcept override;
  void DoFree(Allocation* allocation) noexcept override;
  const char* name() const override { return "events"; }
  HitPath* hit_path() override { return nullptr; }

 private:
  MemoryLevels Levels() const noexcept;

  std::shared_ptr<EventSink> sink_;
  const Allocator* strategy_;  // above the chunk pool; else the layer below
  const Allocator* pool_;      // null: the chain has none
};

}  // namespace strata

#endif  // STRATA_ALLOCATION_DIAGNOSTICS_EVENTS_ALLOCATOR_H_
