#ifndef STRATA_FACADE_ALLOCATOR_FACADE_H_
#define STRATA_FACADE_ALLOCATOR_FACADE_H_

#include <array>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "strata/allocation/allocator.h"
#include "strata/allocation/guard_error.h"
#include "strata/facade/graph_pool_id.h"
#include "strata/facade/options.h"
#include "strata/facade/out_of_memory_callback.h"
#include "strata/platform/clock.h"
#include "strata/platform/function_ref.h"
#include "strata/platform/place.h"
#include "strata/platform/platform.h"
#include "strata/platform/stream.h"
#include "strata/strategy/virtual_memory/exported_memory.h"
#include "strata/strategy/virtual_memory/imported_memory.h"

namespace strata {

class Front;
class FrontTable;
class GraphPools;
class PlaceState;
class ThreadEnds;

// Hands out memory per place and per stream, through the chain of layers that
// the options ask for.
//
// Model: one chain per place and stream. The chain of a place's default stream
//   is built with the facade, that of any other stream on its first use;
//   building makes no device call. An allocation belongs to the stream it was
//   made for: it may be used there at once, and be freed while work in that
//   stream still uses it. Any other stream that uses it is named by
//   RecordStream after its work was submitted. Host and pinned memory belong to
//   no stream: every stream that uses it is named.
// Errors: std::invalid_argument for a place or stream that does not exist;
//   allocation as Allocator::Allocate. A failed call changes nothing in use.
// Threads: any thread. Destroy the facade when no call is in flight; frees may
//   still be, and may come later: each chain lives until its last allocation
//   is freed. Streams that have such allocations, or are marked on them, and
//   were not announced to end, outlive them. Graphs may outlive the facade.
//   After a fork of a program with several threads the child makes a facade of
//   its own; it must neither call this one nor free what that gave: a lock
//   that another thread held stays locked there.
//   A request that fails for lack of memory waits until another thread frees
//   some, up to gpu_allocator_retry_time, if any could, and unless a capture is
//   announced.
// Cost: a hit takes one uncontended lock; finding the chain takes none.
class AllocatorFacade {
 public:
  // `platform` null: the one the options name. Facades may share a platform; a
  // capture that one announces the others know nothing of, so none of them may
  // be asked for anything meanwhile. Before a request of one fails, the others
  // on its device give back idle memory (strata_share_idle).
  // `clock` times waits and trace stamps; it outlives every allocation.
  //
  // Errors: std::invalid_argument naming the option that is wrong;
  //   std::runtime_error if the platform has no device.
  explicit AllocatorFacade(const Options& options,
                           std::shared_ptr<Platform> platform = nullptr,
                           Clock& clock = Clock::Steady());
  AllocatorFacade(const AllocatorFacade&) = delete;
  AllocatorFacade& operator=(const AllocatorFacade&) = delete;
  ~AllocatorFacade();

  // The facade of the process, built from default Options at the first call
  // unless InitInstance came before it. Lives as long as the process.
  static AllocatorFacade& Instance();
  // Errors: std::logic_error if the instance exists already; else as the
  //   constructor.
  static AllocatorFacade& InitInstance(const Options& options);

  // At least `bytes` bytes at `place`, for the place's default stream or for
  // `stream`. 0 bytes give an Allocation of null. `stream_handle` is the
  // driver's handle, looked up and wrapped once.
  // Inline: an AllocationPtr that is returned by a call is returned in memory.
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
  // Alloc, for a caller who makes no use of an AllocationPtr. To be freed by
  // FreeAllocation.
  Allocation* AllocPlain(Place place, std::size_t bytes);
  Allocation* AllocPlain(Place place, std::size_t bytes, const Stream& stream);
  Allocation* AllocPlain(Place place, std::size_t bytes, void* stream_handle);
  std::shared_ptr<Allocation> AllocShared(Place place, std::size_t bytes);
  std::shared_ptr<Allocation> AllocShared(Place place, std::size_t bytes,
                                          Stream stream);
  // Without exceptions for what memory cannot give: null and the reason.
  AllocationPtr TryAlloc(Place place, const Request& request, Failure& failure);
  AllocationPtr TryAlloc(Place place, const Request& request, Stream stream,
                         Failure& failure);

  // The chain of a place and stream, as an Allocator. It lives as long as the
  // facade, or until StreamDestroyed.
  Allocator& GetAllocator(Place place);
  Allocator& GetAllocator(Place place, Stream stream);
  // An allocator that serves requests of 0 bytes: any does; kept for the
  // original's users.
  Allocator& GetZeroAllocator(Place place) { return GetAllocator(place); }
  // The strategy in the chain of the place's default stream, to look at:
  // allocate through the chain.
  //
  // Errors: std::invalid_argument if the strategy there is not auto_growth.
  const Allocator& GetAutoGrowthAllocator(Place place);

  // The stream a driver's handle names; wraps it once, outside any capture.
  // Null is the legacy stream.
  Stream Wrap(void* stream_handle, int device);
  // The stream of requests that name none. Once per place, before its first
  // allocation; std::logic_error after that. std::invalid_argument for host and
  // pinned memory, which belongs to no stream.
  void SetDefaultStream(Place place, Stream stream);
  Stream GetDefaultStream(Place place);
  // Announces that `stream` will be destroyed: records its last events, which
  // stand for its marks from now on, and retires its chains. Does not wait; its
  // work may be running. Live allocations stay valid and are freed as usual.
  // Not for default streams: that of a thread ends with it, and the facade
  // notices, if the thread itself has allocated there.
  void StreamDestroyed(Stream stream);
  // `observer` is called with each stream that turned out to be destroyed
  // although nobody announced its end, once its chains are closed. It does not
  // throw. Call this before any other thread uses the facade.
  void ObserveLostStreams(std::function<void(Stream)> observer);

  // Notes that work submitted to `stream` uses the allocation, so that its
  // memory is not reused before that work is done. False if nothing was noted:
  // it is the allocation's own stream, or it has no memory.
  bool RecordStream(const AllocationPtr& allocation, Stream stream);
  bool RecordStream(Allocation& allocation, Stream stream);
  // The same for a use that is over once `event` is, which the caller recorded
  // on `stream` after that use: replaces the note of that stream. The event may
  // be recorded again, or destroyed, at once; docs/streams.md.
  bool RecordUse(Allocation& allocation, Stream stream, Event event);
  // Takes the note back: the caller has ordered that use.
  void EraseStream(Allocation& allocation, Stream stream);
  // Frees an allocation that was last used by work submitted to `stream`: if
  // that is another stream than its own, RecordStream comes first. Null is
  // ignored.
  //
  // Errors: as RecordStream; then `allocation` is still there.
  void Free(AllocationPtr&& allocation, Stream stream);
  Stream GetStream(const Allocation& allocation);
  bool InSameStream(const Allocation& allocation, Stream stream);
  // The address the system gave for the chunk that holds the allocation.
  void* GetBasePtr(const Allocation& allocation);

  // Memory for CUDA graphs (facade_graphs.cc). A capture allocates from a pool:
  // what is allocated in streams that take part in it comes from there, and
  // stays at its address, for nobody else, until the pool ends; what is
  // allocated outside, and freed or recorded inside, is kept as long. Other
  // streams and threads go on as before. CaptureGuard does all of this.
  //
  // One more user of the pool `id`, which is made if it is not there; 0: a new
  // one. Its next capture is announced: the one of `stream`, which is under way
  // or about to begin, or, without a stream, the next one that nobody else
  // announced. Returns the id.
  //
  // Errors: std::logic_error if a capture of the pool, or of the stream, is
  //   announced and was not seen to have ended.
  GraphPoolId PrepareMemoryPoolForCUDAGraph(GraphPoolId id = 0);
  GraphPoolId PrepareMemoryPoolForCUDAGraph(GraphPoolId id, Stream stream);
  // The capture that was announced for the pool is over, or never began. If
  // nobody says so, the facade notices it later, but only if a request was made
  // in the capture. Ignored while a capture of the pool is under way. Call it
  // before the next capture of the pool is announced.
  //
  // Errors: std::invalid_argument if there is no such pool.
  void CaptureEnded(GraphPoolId id);
  // Keeps the pool until `graph`, of `device`, everything instantiated from it
  // and their last launches are gone. Between the end of the capture, or the
  // last node, and the first instantiation.
  //
  // Errors: DeviceError; then Remove the pool only when its graphs are gone and
  //   their launches are over.
  void KeepForGraph(GraphPoolId id, int device, Graph graph);
  // One user less. The last one gives the pool's memory back, once no graph
  // keeps it and no capture is under way; allocations that live are freed as
  // usual.
  //
  // Errors: std::invalid_argument if there is no such pool.
  void RemoveMemoryPoolOfCUDAGraph(GraphPoolId id);
  // Bytes that the pool holds from the system.
  //
  // Errors: std::invalid_argument if there is no such pool.
  std::size_t GraphPoolReserved(GraphPoolId id) const;

  // Memory for other processes and devices (facade_export.cc;
  // docs/virtual_memory.md, "Export").
  //
  // Exports the handles of physical memory behind a live allocation, as
  // descriptors to send to other processes. They see all of each handle. The
  // handles stay, and count as reserved, until the result is closed.
  //
  // Errors: std::invalid_argument if the allocation belongs to another facade,
  //   if it lies in no handle, or if its device cannot export them;
  //   DeviceError.
  ExportedMemory Export(const Allocation& allocation);
  // Maps what another process has exported for a device place. The memory
  // counts there alone.
  //
  // Errors: std::invalid_argument for other places, and for a list of pieces
  //   that is not the list of one export; DeviceError naming the piece and the
  //   device call.
  ImportedMemory Import(Place place, const std::vector<SharedPiece>& pieces);
  // The addresses to register for a live allocation of this facade: the handles
  // that it lies in, or else the chunk. All are mapped, as long as the
  // allocation lives. With kOneHandle, they are those of the allocation.
  //
  // Errors: std::invalid_argument if it belongs to another facade.
  AddressSpan GetAddressRange(const Allocation& allocation);
  // Lets device `peer` access the memory of `place`, also what is mapped later.
  // It may have been enabled before. Allocations and imports that run at the
  // same time may have memory without the new access.
  //
  // Errors: std::invalid_argument if `peer` cannot access the device;
  //   DeviceError: then some of what is mapped may be accessible.
  void EnablePeerAccess(Place place, int peer);

  // Gives idle memory back to the system, also that of graph pools whose graphs
  // are gone; returns the bytes given, exact if no other call is in flight at
  // the place. Nothing while a capture is announced.
  std::size_t Release(Place place);
  // The same of one stream's chain, without graph pools.
  std::size_t Release(Place place, Stream stream);
  // Release of every device, managed memory too.
  std::size_t EmptyCache();
  // Moves free memory together; returns the bytes moved.
  //
  // Errors: std::logic_error if the strategy of the place cannot: none of those
  //   that hand out plain addresses can.
  std::size_t Compact(Place place);

  // `callback` is asked when memory is exhausted at `place` and giving idle
  // memory back did not help: it frees what it can and returns the bytes. It
  // may run on any thread that allocates, may free and allocate, and may end
  // itself (OutOfMemoryCallback). Those of higher priority are asked first,
  // then those added first; after each that gave something the request is tried
  // again. Rounds over all of them go on as offload_retry_times says. Ends with
  // the facade, or when the result is destroyed.
  //
  // Errors: std::invalid_argument if it is empty.
  OutOfMemoryCallback AddOutOfMemoryCallback(Place place,
                                             OutOfMemoryFunction callback,
                                             int priority = 0);

  // With strata_guard: compares everything around and in the blocks of a place
  // with what it must be, live ones and those in quarantine. Waits for the
  // streams of the place. What it finds is reported as strata_guard_on_error
  // says, then counted here.
  //
  // Errors: std::logic_error without strata_guard.
  MemoryCheck CheckMemory(Place place);
  // `callback` is told of every error that the guard finds and logs, at any
  // place; it may allocate, and free what it allocated. Errors found while the
  // facade is destroyed, or later, are told too: then it leaves the facade
  // alone. Errors as CheckMemory; std::invalid_argument if it is empty.
  void AddMemoryErrorCallback(const GuardReporter::Callback& callback);
  // `visitor` sees every chunk of memory that `place` gets from the system
  // (count_change +1) or gives back (-1), for instance to register it with a
  // network card; of a strategy that maps memory, every mapping, before it is
  // unmapped again. Visitors run in the order they were added for a chunk that
  // comes, in reverse for one that goes; they may allocate, but not throw.
  // Add them before anything else is asked of the place: a host place then
  // gets a pooling strategy, so that chunks are few.
  //
  // One that allocates at the place that it visits may be refused, as bfc grows
  // by one chunk at a time.
  //
  // Errors: std::invalid_argument if it is empty; std::logic_error after the
  //   first allocation at the place, and where the driver has the chunks
  //   (cuda_malloc_async).
  // Threads: no other call about the place may be in flight.
  using ChunkVisitor = std::function<void(Place place, void* data,
                                          std::size_t bytes, int count_change)>;
  void AddVisitor(Place place, ChunkVisitor visitor);

  // Of all streams of a place: sums, what their strategies have free (the
  // largest free block is that of one; what a stream parks of a shared strategy
  // and gets again is neither hit nor miss), and what is held from the system.
  // The peak in use is exact with strata_exact_peak, and as long as one stream
  // alone was used. Otherwise it may be a bound (Stats::peak_in_use_is_bound):
  // the sum of the streams' peaks, or the peak of the reserved bytes if that is
  // less. One stream is looked at after the other: memory that changes streams
  // meanwhile may be counted in both, or in neither.
  Stats GetStats(Place place);
  // The largest peak in use of any one stream: a lower bound for the place.
  std::size_t LargestStreamPeak(Place place);
  void ResetPeak(Place place);
  // Every place as one JSON object: {"device:0":{…},…}. Also how often requests
  // went to sleep to wait for memory, and how long they slept in total
  // (retry_waits, retry_waited_us).
  std::string StatsJson();

  // Visits the chain of the place's default stream.
  void Accept(Place place, AllocatorVisitor& visitor);
  // Visits the chains of all streams, each layer once, and all that is
  // reserved: with strategies that list their blocks, their bytes but for
  // BlockState::kLent are the place's reserved bytes, unless a pool of graphs
  // has some that its chains are done with.
  void AcceptAll(Place place, AllocatorVisitor& visitor);
  // The layers of a chain, outermost first, as names.
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
  AllocationLog* allocation_log() const { return shared_.allocation_log.get(); }
  // Where its fronts are found. For the C ABI.
  const FrontTable& fronts() const { return *fronts_; }
  // Every place this facade serves.
  std::vector<Place> places() const;

 private:
  friend class CaptureGuard;
  // A capture of a graph pool, by the number of its announcement.
  struct Announcement {
    GraphPoolId pool = 0;
    std::uint64_t number = 0;
  };
  // As PrepareMemoryPoolForCUDAGraph.
  Announcement Announce(GraphPoolId id, Stream stream);
  // As CaptureEnded and RemoveMemoryPoolOfCUDAGraph, of that one only.
  void Finish(const Announcement& announcement) noexcept;

  void MakeShared();
  void AddPlaces();
  // What --enable_gpu_memory_usage_log asks for.
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
  // Alloc where the thread does not know the way yet: functions of their own,
  // whose strings and registers no hit pays for.
  Allocation* AllocFirst(Place place, std::size_t bytes);
  Allocation* AllocFirst(Place place, std::size_t bytes, const Stream& stream);
  Allocation* AllocFirst(Place place, std::size_t bytes, void* stream_handle);
  [[noreturn]] void ThrowNoPlace(Place place) const;
  Front& FrontOf(Place place, const Stream& stream);
  Front& FrontOf(Place place, void* stream_handle);
  // Closes the chains of streams that turned out to be destroyed although
  // nobody announced their end. Nothing while a capture is announced.
  void EndLostStreams();
  // What StreamDestroyed announces; and what the end of a thread does for its
  // own stream, in the thread.
  void EndStream(const Stream& stream);
  void EndOfThread(const Stream& stream);
  // Fails unless the stream's handle still names the stream.
  void CheckStream(Stream stream);
  // Errors: std::invalid_argument, naming `what`, unless it can be marked.
  void RequireMarkable(const char* what, Stream stream);
  // `now` is the stream that has the handle of `stream` today; without uid if
  // there is none.
  [[noreturn]] static void ThrowStale(Stream stream, Stream now);
  // A capture would end, as the device does not let the thread say that it
  // knows what it does.
  [[noreturn]] static void ThrowNotRelaxed(const char* call);
  // Sets the peak in use of `sum`, which has that of all fronts.
  void SetPeak(const PlaceState& state, Stats& sum) const;
  void ForEachState(FunctionRef<void(PlaceState&)> visit) const;
  // What `release` gave the system at `places`, which it counts only in part:
  // not what went as frees that it waited for, nor what a driver's pool gave up
  // by itself.
  std::size_t GivenBy(const std::vector<PlaceState*>& places,
                      FunctionRef<std::size_t()> release) const;

  const Options options_;
  std::shared_ptr<Platform> platform_;
  std::shared_ptr<GraphPools> graph_pools_;
  ChainContext shared_;                 // what the chains of all places share
  std::shared_ptr<FrontTable> fronts_;  // of all places
  std::shared_ptr<ThreadEnds> thread_ends_;
  // By PlaceKind, then index.
  std::array<std::vector<std::shared_ptr<PlaceState>>, 4> places_;
  std::function<void(Stream)> lost_observer_;  // null: nobody
};

}  // namespace strata

#endif  // STRATA_FACADE_ALLOCATOR_FACADE_H_
