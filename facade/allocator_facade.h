#ifndef STRATA_FACADE_ALLOCATOR_FACADE_H_
#define STRATA_FACADE_ALLOCATOR_FACADE_H_

#include <array>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "strata/allocation/allocator.h"
#include "strata/allocation/guard/guard_error.h"
#include "strata/base/clock.h"
#include "strata/base/function_ref.h"
#include "strata/facade/graphs/graph_pool_id.h"
#include "strata/facade/options.h"
#include "strata/facade/out_of_memory_callback.h"
#include "strata/platform/place.h"
#include "strata/platform/platform.h"
#include "strata/platform/stream.h"
#include "strata/strategy/virtual_memory/sharing/exported_memory.h"
#include "strata/strategy/virtual_memory/sharing/imported_memory.h"

namespace strata {

class AllocationLog;
class Front;
class FrontTable;
class GraphPools;
class TimelineTable;
class PlaceState;
class ThreadEnds;
class TraceSink;

// Allocates memory per place and per stream, through the chain of layers that
// the options select.
//
// Model: one chain per place and stream. The chain of a place's default stream
//   is built with the facade, the chain of any other stream on its first use.
//   Building a chain makes no device call.
//   Each allocation belongs to one stream. That stream may use it at once, and
//   the caller may free it while work of that stream is still running. For
//   every other stream that uses the allocation, call RecordStream() after
//   submitting the work and before the free. Host and pinned memory belong to
//   no stream: call RecordStream() for every stream that uses it.
// Errors: std::invalid_argument for a place or stream that does not exist;
//   allocation as Allocator::Allocate. A failed call changes no memory in use.
// Threads: any thread. Destroy the facade when no call except frees is in
//   flight. Frees may also follow later: each chain lives until its last
//   allocation is freed. A stream that owns such an allocation, or is recorded
//   on one, must outlive it, unless the end of the stream was announced. Graphs
//   may outlive the facade.
//   After a fork of a program with several threads, the child creates its own
//   facade. It must neither call this facade nor free memory of it: a lock that
//   another thread held remains locked in the child.
//   A request that fails for lack of memory waits until another thread frees
//   some, if any thread could, for at most gpu_allocator_retry_time. It does
//   not wait while a capture is announced.
// Cost: a hit acquires one uncontended lock. The lookup of the chain acquires
//   none.
class AllocatorFacade {
 public:
  // `platform` null: the platform that the options name. Several facades may
  // share a platform. A facade does not see captures that another facade
  // announced: do not call it until such a capture has ended. Before a request
  // of one facade fails, the other facades on its device release idle memory
  // (strata_share_idle). `clock` times waits and trace stamps; it outlives
  // every allocation.
  //
  // Errors: std::invalid_argument naming the option that is wrong;
  //   std::runtime_error if the platform has no device.
  explicit AllocatorFacade(const Options& options,
                           std::shared_ptr<Platform> platform = nullptr,
                           Clock& clock = Clock::Steady());
  AllocatorFacade(const AllocatorFacade&) = delete;
  AllocatorFacade& operator=(const AllocatorFacade&) = delete;
  ~AllocatorFacade();

  // The facade of the process. The first call builds it from default Options,
  // unless InitInstance was called before. Lives as long as the process.
  static AllocatorFacade& Instance();
  // Errors: std::logic_error if the instance exists already; else as the
  //   constructor.
  static AllocatorFacade& InitInstance(const Options& options);

  // Allocates at least `bytes` bytes at `place`, for the place's default stream
  // or for `stream`. For 0 bytes, returns an Allocation with address null.
  // `stream_handle` is the driver's handle. The facade looks it up and wraps it
  // once. Inline, because an out-of-line function would return the
  // AllocationPtr in memory, not in a register.
  AllocationPtr Alloc(Place place, std::size_t bytes) {
    return AllocationPtr(AllocPlain(place, bytes));
  }
  AllocationPtr Alloc(Place place, std::size_t bytes, const Stream& stream) {
    return AllocationPtr(AllocPlain(place, bytes, stream));
  }
  AllocationPtr Alloc(Place place, std::size_t bytes, void* stream_handle) {
    return AllocationPtr(AllocPlain(place, bytes, stream_handle));
  }
  AllocationPtr Alloc(Place place, const Request& request);
  AllocationPtr Alloc(Place place, const Request& request, Stream stream);
  AllocationPtr Alloc(Place place, const Request& request, void* stream_handle);
  // Alloc for a caller that does not use AllocationPtr. Free the result with
  // FreeAllocation.
  Allocation* AllocPlain(Place place, std::size_t bytes);
  Allocation* AllocPlain(Place place, std::size_t bytes, const Stream& stream);
  Allocation* AllocPlain(Place place, std::size_t bytes, void* stream_handle);
  std::shared_ptr<Allocation> AllocShared(Place place, std::size_t bytes) {
    return Alloc(place, bytes);
  }
  std::shared_ptr<Allocation> AllocShared(Place place, std::size_t bytes,
                                          Stream stream) {
    return Alloc(place, bytes, stream);
  }
  // Returns null and sets `failure` where Alloc throws for lack of memory.
  AllocationPtr TryAlloc(Place place, const Request& request, Failure& failure);
  AllocationPtr TryAlloc(Place place, const Request& request, Stream stream,
                         Failure& failure);

  // The chain of a place and stream, as an Allocator. Valid as long as the
  // facade, or until StreamDestroyed.
  Allocator& GetAllocator(Place place);
  Allocator& GetAllocator(Place place, Stream stream);
  // An allocator that serves requests of 0 bytes. Every allocator does; this
  // name exists for users of the original.
  Allocator& GetZeroAllocator(Place place) { return GetAllocator(place); }
  // The strategy in the chain of the place's default stream, for inspection
  // only. Allocate through the chain.
  //
  // Errors: std::invalid_argument if the strategy there is neither auto_growth
  //   nor virtual_memory, which derives from it.
  const Allocator& GetAutoGrowthAllocator(Place place);

  // The stream of a driver's handle; null is the legacy stream. Wraps the
  // handle once, outside any capture.
  Stream Wrap(void* stream_handle, int device);
  // The stream of requests that name none. Call SetDefaultStream once per
  // place, before its first allocation.
  //
  // Errors: std::logic_error after the first allocation or a second call;
  //   std::invalid_argument for host and pinned memory, which belongs to no
  //   stream.
  void SetDefaultStream(Place place, Stream stream);
  Stream GetDefaultStream(Place place);
  // Announces that `stream` will be destroyed. Records its last events, which
  // replace its marks from now on, and retires its chains. Does not wait: work
  // of the stream may be running. Live allocations remain valid and are freed
  // as usual. Not for default streams. The per-thread default stream of a
  // thread ends with that thread. The facade notices its end if the thread
  // itself allocated on it.
  void StreamDestroyed(Stream stream);
  // From now on this facade inserts no wait into `stream`, and no wait for its
  // work into other streams. Memory passes between them only after the host has
  // seen the work done; a request that needs it at once waits on the host. For
  // streams of collectives, which all ranks must run in one order. Call it
  // before the stream uses memory. It lasts until the end of the stream.
  //
  // Errors: std::invalid_argument if the stream names none.
  void ForbidWaits(Stream stream);
  // Calls `observer` with each stream that was destroyed without an
  // announcement, after its chains are closed. `observer` must not throw. Call
  // this before any other thread uses the facade.
  void ObserveLostStreams(std::function<void(Stream)> observer);

  // Records that work submitted to `stream` uses the allocation. Its memory is
  // not reused before that work completes. Returns false if nothing was
  // recorded: `stream` is the allocation's own stream, or the allocation has no
  // memory.
  bool RecordStream(Allocation& allocation, Stream stream);
  bool RecordStream(const AllocationPtr& allocation, Stream stream) {
    return RecordStream(*allocation, stream);
  }
  // Like RecordStream, for a use that is complete when `event` is. The caller
  // recorded `event` on `stream` after that use. Replaces the record of that
  // stream. The event may be recorded again, or destroyed, at once;
  // docs/streams.md.
  bool RecordUse(Allocation& allocation, Stream stream, Event event);
  // Removes the record of `stream`: the caller has ordered that use.
  void EraseStream(Allocation& allocation, Stream stream);
  // Frees an allocation that was last used by work submitted to `stream`. If
  // `stream` is not the allocation's own stream, calls RecordStream first. Null
  // is ignored.
  //
  // Errors: as RecordStream; then `allocation` is not freed.
  void Free(AllocationPtr&& allocation, Stream stream);
  Stream GetStream(const Allocation& allocation);
  bool InSameStream(const Allocation& allocation, Stream stream) {
    return GetStream(allocation) == stream;
  }
  // The address that the system returned for the chunk that holds the
  // allocation.
  void* GetBasePtr(const Allocation& allocation) { return allocation.base(); }

  // Memory for CUDA graphs (facade_graphs.cc). A capture allocates from a graph
  // pool: memory allocated in its streams comes from the pool, and remains
  // reserved at its address until the pool ends. Memory allocated outside the
  // capture, and freed or recorded inside it, is held as long. Other streams
  // and threads are not affected. CaptureGuard makes all of these calls.
  //
  // Adds a user to the pool `id` and announces its next capture. Creates the
  // pool if it does not exist; 0 creates a new one. The announced capture is
  // the one of `stream`, which is under way or about to begin. Without a
  // stream, it is the next capture without another announcement. Returns the
  // id.
  //
  // Errors: std::logic_error if a capture of the pool, or of the stream, is
  //   announced and its end was not seen.
  GraphPoolId PrepareMemoryPoolForCUDAGraph(GraphPoolId id = 0,
                                            Stream stream = Stream()) {
    return Announce(id, stream).pool;
  }
  // The capture that was announced for the pool has ended, or never began.
  // Without this call the facade notices the end later, but only if a request
  // was made in the capture. Ignored while a capture of the pool is under way.
  // Call it before the next capture of the pool is announced.
  //
  // Errors: std::invalid_argument if there is no such pool.
  void CaptureEnded(GraphPoolId id);
  // Holds the pool until `graph`, of `device`, all its instances and their last
  // launches have ended. Call it after the end of the capture, or after the
  // last node was added, and before the first instantiation.
  //
  // Errors: DeviceError; then Remove the pool only when its graphs are gone and
  //   their launches have completed.
  void KeepForGraph(GraphPoolId id, int device, Graph graph);
  // Removes a user of the pool. The last one releases the pool's memory, once
  // no graph holds it and no capture is under way. Live allocations are freed
  // as usual.
  //
  // Errors: std::invalid_argument if there is no such pool.
  void RemoveMemoryPoolOfCUDAGraph(GraphPoolId id);
  // Bytes that the pool holds from the system.
  //
  // Errors: std::invalid_argument if there is no such pool.
  std::size_t GraphPoolReserved(GraphPoolId id) const;

  // Memory for other processes and devices (facade_export.cc;
  // docs/rules/virtual_memory.md, "Export").
  //
  // Exports the handles of physical memory behind a live allocation, as
  // descriptors to send to other processes. An importer sees all bytes of each
  // handle. The handles remain, and count as reserved, until the result is
  // closed.
  //
  // Errors: std::invalid_argument if the allocation belongs to another facade,
  //   if it lies in no handle, or if its device cannot export them;
  //   DeviceError.
  ExportedMemory Export(const Allocation& allocation);
  // Maps memory that another process has exported for a device place. The
  // memory counts in the exporting process only.
  //
  // Errors: std::invalid_argument for other places, and for a list of pieces
  //   that is not the list of one export; DeviceError naming the piece and the
  //   device call.
  ImportedMemory Import(Place place, const std::vector<SharedPiece>& pieces);
  // The addresses to register for a live allocation of this facade: the handles
  // that it lies in, or else the chunk. All of them are mapped as long as the
  // allocation lives. With kOneHandle, they are the addresses of the
  // allocation.
  //
  // Errors: std::invalid_argument if it belongs to another facade.
  AddressSpan GetAddressRange(const Allocation& allocation);
  // Lets device `peer` access the memory of `place`, including memory that is
  // mapped later. The access may be enabled already. An allocation or import
  // that runs at the same time may return memory without the new access.
  //
  // Errors: std::invalid_argument if `peer` cannot access the device;
  //   DeviceError: then some of the mapped memory may be accessible.
  void EnablePeerAccess(Place place, int peer);

  // Releases idle memory to the system, including graph pools whose graphs are
  // gone. Returns the bytes released, exact if no other call is in flight at
  // the place. Releases nothing while a capture is announced.
  std::size_t Release(Place place);
  // Releases the idle memory of one stream's chain, without graph pools.
  std::size_t Release(Place place, Stream stream);
  // Release of every device, including managed memory.
  std::size_t EmptyCache();
  // Moves free memory together. Returns the bytes moved.
  //
  // Errors: std::logic_error if the strategy of the place cannot move memory.
  //   No strategy that allocates plain addresses can.
  std::size_t Compact(Place place);

  // Adds a callback for `place`. The facade calls it when memory is exhausted
  // there and the release of idle memory did not help. It frees memory and
  // returns the bytes freed. It may run on any thread that allocates, may free
  // and allocate, and may unregister itself (OutOfMemoryCallback). Callbacks of
  // higher priority run first, then those added first. After each callback that
  // freed memory, the request is tried again. Rounds over all callbacks repeat
  // as offload_retry_times says. The registration ends with the facade, or when
  // the result is destroyed.
  //
  // Errors: std::invalid_argument if it is empty.
  OutOfMemoryCallback AddOutOfMemoryCallback(Place place,
                                             OutOfMemoryFunction callback,
                                             int priority = 0);

  // With strata_guard: compares all guarded bytes in and around the blocks of a
  // place, live or in quarantine, with their expected values. Waits for the
  // streams of the place. Reports each error as strata_guard_on_error says,
  // then counts it in the result.
  //
  // Errors: std::logic_error without strata_guard.
  MemoryCheck CheckMemory(Place place);
  // Calls `callback` for every error that the guard finds and logs, at any
  // place. It may allocate, and free memory that it allocated. It is also
  // called for errors found while the facade is destroyed, or later: then it
  // must not use the facade. Errors as CheckMemory; std::invalid_argument if it
  // is empty.
  void AddMemoryErrorCallback(const GuardReporter::Callback& callback);
  // Calls `visitor` for every chunk of memory that `place` acquires from the
  // system (count_change +1) or releases (-1), for instance to register it with
  // a network card. With a strategy that maps memory, calls it for every
  // mapping, and before each unmapping. Visitors run in the order they were
  // added for a new chunk, in reverse order for a released one. They may
  // allocate, but must not throw. Add them before any other call for the place:
  // a host place then selects a pooling strategy, so that there are few chunks.
  //
  // A visitor that allocates at the place that it visits may be refused,
  // because bfc grows by one chunk at a time.
  //
  // Errors: std::invalid_argument if it is empty; std::logic_error after the
  //   first allocation at the place, and where the driver holds the chunks
  //   (cuda_malloc_async).
  // Threads: no other call about the place may be in flight.
  using ChunkVisitor = std::function<void(Place place, void* data,
                                          std::size_t bytes, int count_change)>;
  void AddVisitor(Place place, ChunkVisitor visitor);

  // The statistics of all streams of a place: sums, the free memory of their
  // strategies, and the memory held from the system. The largest free block is
  // the largest of one strategy. A block of a shared strategy that its stream
  // freed and takes back at once (BusyFrees) counts as neither hit nor miss.
  // The peak in use is exact up to 64 streams, and with strata_exact_peak. It
  // is an upper bound (Stats::peak_in_use_is_bound) with more streams, and with
  // several streams and strata_guard or strata_stat=false. It is at most the
  // peak of the reserved bytes.
  // The call reads one stream after another. Memory that changes streams
  // meanwhile may be counted in both streams, or in neither.
  Stats GetStats(Place place);
  // The largest peak in use of any one stream: a lower bound for the place.
  std::size_t LargestStreamPeak(Place place);
  void ResetPeak(Place place);
  // Every place as one JSON object: {"device:0":{…},…}. It includes how often
  // requests slept to wait for memory, and for how long in total (retry_waits,
  // retry_waited_us).
  std::string StatsJson();

  // Visits the chain of the place's default stream.
  void Accept(Place place, AllocatorVisitor& visitor);
  // Visits the chains of all streams, each layer once, and all reserved memory.
  // With strategies that list their blocks, the bytes of all blocks except
  // BlockState::kLent add up to the place's reserved bytes. Exception: a graph
  // pool may hold bytes that its chains no longer use.
  void AcceptAll(Place place, AllocatorVisitor& visitor);
  // The names of the layers of a chain, outermost first.
  std::vector<std::string> Layers(Place place);

  // Whether RecordStream is honoured.
  bool IsStreamSafeCUDAAllocatorUsed() const {
    return options_.decorators.stream_safe;
  }
  // Whether device memory comes from the driver's stream-ordered pool.
  bool IsCUDAMallocAsyncAllocatorUsed() const {
    return options_.Strategy() == "cuda_malloc_async";
  }

  const Options& options() const { return options_; }
  Platform& platform() { return *platform_; }
  // The file of strata_allocation_log_file; null without one.
  AllocationLog* allocation_log() const { return allocation_log_.get(); }
  // All places that this facade serves.
  std::vector<Place> places() const;

 private:
  friend class CaptureGuard;
  // A capture of a graph pool, with the number of its announcement.
  struct Announcement {
    GraphPoolId pool = 0;
    std::uint64_t number = 0;
  };
  // As PrepareMemoryPoolForCUDAGraph.
  Announcement Announce(GraphPoolId id, Stream stream);
  // CaptureEnded and RemoveMemoryPoolOfCUDAGraph for one announcement.
  void Finish(const Announcement& announcement) noexcept;

  void MakeShared();
  void AddPlaces();
  void LogUsage() noexcept;
  void Close() noexcept;
  PlaceState& Find(Place place) const {
    const auto kind = static_cast<std::size_t>(place.kind);
    if (kind >= places_.size() || place.index >= places_[kind].size() ||
        places_[kind][place.index] == nullptr) {
      ThrowNoPlace(place);
    }
    return *places_[kind][place.index];
  }
  // Alloc when the thread's route does not lead to the front. Separate
  // functions, so that a hit does not save registers or build strings for them.
  Allocation* AllocFirst(Place place, std::size_t bytes);
  Allocation* AllocFirst(Place place, std::size_t bytes, const Stream& stream);
  Allocation* AllocFirst(Place place, std::size_t bytes, void* stream_handle);
  [[noreturn]] void ThrowNoPlace(Place place) const;
  Front& FrontOf(Place place, const Stream& stream);
  Front& FrontOf(Place place, void* stream_handle);
  // Closes the chains of streams that were destroyed without an announcement.
  // Does nothing while a capture is announced.
  void EndLostStreams();
  // EndStream implements StreamDestroyed. EndOfThread does the same for a
  // thread's own stream when the thread ends; it runs in that thread.
  void EndStream(const Stream& stream);
  void EndOfThread(const Stream& stream);
  // Throws unless the handle of the stream still names it.
  void CheckStream(Stream stream);
  // Throws std::invalid_argument, naming the function `what`, unless memory of
  // `stream` can be marked.
  void RequireMarkable(const char* what, Stream stream);
  // `now` is the stream that currently owns the handle of `stream`; uid 0 if
  // there is none.
  [[noreturn]] static void ThrowStale(Stream stream, Stream now);
  // Throws because the call would end a capture: the device cannot switch the
  // thread to the relaxed capture mode.
  [[noreturn]] static void ThrowNotRelaxed(const char* call);
  void SetPeak(const PlaceState& state, Stats& sum) const;
  void ForEachState(FunctionRef<void(PlaceState&)> visit) const;
  // Bytes that `release` released at `places`, measured by the size of their
  // pools: its result misses frees that it waited for, and memory that a driver
  // released.
  std::size_t GivenBy(const std::vector<PlaceState*>& places,
                      FunctionRef<std::size_t()> release) const;

  const Options options_;
  std::shared_ptr<Platform> platform_;
  std::shared_ptr<GraphPools> graph_pools_;
  ChainContext shared_;  // State that the chains of all places share.
  std::shared_ptr<TimelineTable> timelines_;
  std::shared_ptr<TraceSink> trace_sink_;          // null: no trace
  std::shared_ptr<AllocationLog> allocation_log_;  // null: no log
  std::shared_ptr<FrontTable> fronts_;             // Fronts of all places.
  std::shared_ptr<ThreadEnds> thread_ends_;
  // Indexed by PlaceKind, then by index.
  std::array<std::vector<std::shared_ptr<PlaceState>>, 4> places_;
  std::function<void(Stream)> lost_observer_;  // null: no observer
};

}  // namespace strata

#endif  // STRATA_FACADE_ALLOCATOR_FACADE_H_
