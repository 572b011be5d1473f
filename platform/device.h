#ifndef STRATA_PLATFORM_DEVICE_H_
#define STRATA_PLATFORM_DEVICE_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "strata/platform/calls/call_record.h"
#include "strata/platform/calls/device_call.h"
#include "strata/platform/memory_types.h"
#include "strata/platform/status.h"
#include "strata/platform/stream.h"

namespace strata {

// The capabilities of a device. Code above `platform` checks these; it never
// checks which backend it runs on.
struct Caps {
  bool mem_pools = false;       // stream-ordered pools
  bool virtual_memory = false;  // ReserveRange, CreateMemory, MapRange …
  bool share_fd = false;
  bool share_fabric = false;
  bool rdma = false;  // MemProperties::rdma: memory for network cards
  bool managed_memory = false;
  bool pinned_memory = false;
  bool capture = false;
  bool graphs = false;
  bool graph_mem_nodes = false;
  bool user_objects = false;
  bool peer_access = false;
  // CUDA's compute capability, the number before the dot. 0 if the device has
  // none or if it is unknown.
  int compute_major = 0;
  int compute_minor = 0;   // the number behind the dot
  bool simulated = false;  // nothing runs on hardware; addresses may be phantom
  // Device memory does not store the data that is written to it.
  bool phantom_memory = false;
  std::size_t map_granularity_bytes = 0;    // 0 without virtual memory
  std::size_t alloc_alignment_bytes = 256;  // of every MemAlloc result
};

// One device. It offers CUDA's vocabulary for memory, streams, events, capture
// and graphs behind one interface, so that the layers above run on any backend.
//
// Errors: every entry point returns a Status with CUDA's number and never
//   throws. On any Status but kSuccess nothing has changed and no out-parameter
//   is written. An entry point that the device lacks returns kNotSupported; the
//   call is not counted. The driver keeps no "last error".
// Threads: any thread, concurrently. Never call a Device with a lock held.
// Cost: a driver call (microseconds) unless said otherwise.
// Lifetime: owned by its Platform.
// Source: cuda_semantics.md §6.6; meanings as in the CUDA 13.0 headers.
class Device {
 public:
  Device() = default;
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;
  virtual ~Device() = default;

  // No driver call.
  virtual int ordinal() const = 0;
  virtual const Caps& caps() const = 0;
  // Identifies the hardware behind this object: devices of one identity share
  // its memory.
  virtual std::uintptr_t identity() const {
    return reinterpret_cast<std::uintptr_t>(this);
  }
  // Number of times that `call` reached this device, refused calls included; 0
  // for an event. No driver call. Exact when no call is in flight.
  std::uint64_t CallCount(DeviceCall call) const;
  // Sets the observer; null removes it. Each call is reported to `observer`
  // after it happened, in the calling thread and with no lock held. Calls that
  // are in flight in other threads may still be reported to the previous
  // observer. No driver call.
  void SetCallObserver(CallObserver observer);
  // Adds an observer beside the one of SetCallObserver, for the life of the
  // device.
  void AddCallObserver(CallObserver observer);
  // True if there is an observer. If not, skip work that only an observer
  // needs.
  bool observed() const { return observed_.load(std::memory_order_acquire); }
  // True if AddCallObserver was called. Then also note facts that no other call
  // shows.
  bool observed_for_life() const {
    return observed_for_life_.load(std::memory_order_acquire);
  }
  // Reports an event (device_events.def) to the observers. No driver call.
  void Note(const CallRecord& event) { Observe(event); }

  virtual Status MemGetInfo(std::size_t* free_bytes,
                            std::size_t* total_bytes) = 0;
  virtual Status Synchronize() = 0;

  // Streams. LegacyStream and PerThreadStream make no driver call.
  virtual Status StreamCreate(Stream* stream, unsigned flags) = 0;
  virtual Status StreamDestroy(Stream stream) = 0;
  virtual Stream LegacyStream() = 0;
  virtual Stream PerThreadStream() = 0;
  // False if `stream` is the per-thread stream of another thread. The calling
  // thread cannot name that stream: every call on it is refused.
  bool CanName(const Stream& stream) {
    return reinterpret_cast<std::uintptr_t>(stream.handle) !=
               kPerThreadHandle ||
           stream == PerThreadStream();
  }
  // Fills in device and uid for a driver's handle. Do not call while the stream
  // is capturing.
  virtual Status WrapStream(void* handle, Stream* stream) = 0;
  virtual Status StreamSynchronize(Stream stream) = 0;
  virtual Status StreamQuery(Stream stream) = 0;
  virtual Status StreamWaitEvent(Stream stream, Event event,
                                 unsigned flags) = 0;
  virtual Status LaunchHostFunc(Stream stream, HostFunction function,
                                void* argument);

  // Events.
  virtual Status EventCreate(Event* event, unsigned flags) = 0;
  virtual Status EventDestroy(Event event) = 0;
  virtual Status EventRecord(Event event, Stream stream, unsigned flags) = 0;
  virtual Status EventQuery(Event event) = 0;
  virtual Status EventSynchronize(Event event) = 0;

  // Memory that is allocated and freed at once (cudaMalloc, cudaFree).
  // MemFree(0) succeeds. Before MemFree the caller waits for every use of the
  // memory (cuda_semantics.md M6).
  virtual Status MemAlloc(DevicePtr* ptr, std::size_t bytes) = 0;
  virtual Status MemFree(DevicePtr ptr) = 0;
  virtual Status MallocHost(void** ptr, std::size_t bytes, unsigned flags);
  virtual Status FreeHost(void* ptr);
  virtual Status HostRegister(void* ptr, std::size_t bytes, unsigned flags);
  virtual Status HostUnregister(void* ptr);
  virtual Status MallocManaged(DevicePtr* ptr, std::size_t bytes,
                               unsigned flags);
  virtual Status MemcpyAsync(DevicePtr target, DevicePtr source,
                             std::size_t bytes, Stream stream) = 0;
  virtual Status MemsetAsync(DevicePtr ptr, int value, std::size_t bytes,
                             Stream stream) = 0;
  virtual Status PointerAttributes(DevicePtr ptr, PointerInfo* info);
  virtual Status EnablePeerAccess(int peer);
  virtual Status CanAccessPeer(int peer, bool* can);

  // Stream-ordered pools.
  virtual Status DefaultMemPool(MemPool* pool);
  virtual Status PoolCreate(MemPool* pool, const MemProperties& properties,
                            std::size_t max_bytes);
  virtual Status PoolDestroy(MemPool pool);
  virtual Status PoolTrimTo(MemPool pool, std::size_t keep_bytes);
  virtual Status PoolSetAttribute(MemPool pool, PoolAttribute attribute,
                                  std::uint64_t value);
  virtual Status PoolGetAttribute(MemPool pool, PoolAttribute attribute,
                                  std::uint64_t* value);
  virtual Status PoolSetAccess(MemPool pool, const AccessDescriptor* access,
                               std::size_t count);
  virtual Status MallocFromPoolAsync(DevicePtr* ptr, std::size_t bytes,
                                     MemPool pool, Stream stream);
  virtual Status FreeAsync(DevicePtr ptr, Stream stream);
  virtual Status PoolExport(MemPool pool, ShareType type, Shareable* shareable);
  virtual Status PoolImport(MemPool* pool, ShareType type,
                            const Shareable& shareable);

  // Virtual memory: address ranges, physical memory, and mappings of physical
  // memory into the ranges.
  virtual Status Granularity(const MemProperties& properties, bool recommended,
                             std::size_t* bytes);
  virtual Status ReserveRange(DevicePtr* ptr, std::size_t bytes,
                              std::size_t alignment, DevicePtr hint);
  virtual Status FreeRange(DevicePtr ptr, std::size_t bytes);
  virtual Status CreateMemory(MemHandle* handle, std::size_t bytes,
                              const MemProperties& properties);
  virtual Status ReleaseMemory(MemHandle handle);
  virtual Status MapRange(DevicePtr ptr, std::size_t bytes, std::size_t offset,
                          MemHandle handle);
  virtual Status UnmapRange(DevicePtr ptr, std::size_t bytes);
  virtual Status SetAccess(DevicePtr ptr, std::size_t bytes,
                           const AccessDescriptor* access, std::size_t count);
  virtual Status GetAccess(DevicePtr ptr, Location location, Access* access);
  virtual Status ExportMemory(MemHandle handle, ShareType type,
                              Shareable* shareable);
  virtual Status ImportMemory(MemHandle* handle, ShareType type,
                              const Shareable& shareable);
  virtual Status RetainMemory(DevicePtr ptr, MemHandle* handle);

  // Capture and graphs.
  virtual Status StreamBeginCapture(Stream stream, CaptureMode mode);
  virtual Status StreamBeginCaptureToGraph(Stream stream, Graph graph,
                                           const GraphNode* dependencies,
                                           std::size_t count, CaptureMode mode);
  virtual Status StreamEndCapture(Stream stream, Graph* graph);
  virtual Status StreamIsCapturing(Stream stream, CaptureStatus* status);
  virtual Status StreamCaptureInfo(Stream stream, CaptureInfo* info);
  virtual Status StreamUpdateCaptureDependencies(Stream stream,
                                                 const GraphNode* dependencies,
                                                 std::size_t count,
                                                 bool replace);
  virtual Status ThreadExchangeCaptureMode(CaptureMode* mode);
  virtual Status GraphCreate(Graph* graph);
  virtual Status GraphDestroy(Graph graph);
  virtual Status GraphNodePredecessors(GraphNode node,
                                       std::vector<GraphNode>* predecessors);
  virtual Status GraphInstantiate(GraphExec* exec, Graph graph, unsigned flags);
  virtual Status GraphExecDestroy(GraphExec exec);
  virtual Status GraphLaunch(GraphExec exec, Stream stream);
  virtual Status GraphExecUpdate(GraphExec exec, Graph graph);
  virtual Status GraphMemTrim();
  virtual Status GraphMemAttribute(GraphMemAttributeKind kind,
                                   std::uint64_t* value);
  virtual Status UserObjectCreate(UserObject* object, void* pointer,
                                  HostFunction destroy);
  virtual Status GraphRetainUserObject(Graph graph, UserObject object,
                                       bool move);
  virtual Status UserObjectRelease(UserObject object);

 protected:
  // Every implemented entry point calls this exactly once, first.
  void CountCall(DeviceCall call);
  // Every implemented entry point ends with this, with no lock held. Without an
  // observer it costs one load.
  void Observe(const CallRecord& record) {
    if (observed()) TellObserver(record);
  }

  // Reports to the observers the nodes that are operands of the next call.
  void NoteDependencies(const GraphNode* nodes, std::size_t count);

  // The clock of CallRecord::time_ns.
  virtual std::uint64_t NowNs() const;

 private:
  // First the observer of SetCallObserver, which may be empty, then the added
  // observers.
  using Observers = std::vector<CallObserver>;

  void TellObserver(CallRecord record);
  // Replaces the observers by a copy that `change` has modified.
  template <class Change>
  void ChangeObservers(Change change);

  std::array<std::atomic<std::uint64_t>, kDeviceCallCount> call_counts_{};
  std::atomic<bool> observed_{false};  // true if there is an observer
  std::atomic<bool> observed_for_life_{false};
  std::mutex observer_mutex_;
  // Null if there is no observer. Guarded by observer_mutex_.
  std::shared_ptr<const Observers> observers_;
};

}  // namespace strata

#endif  // STRATA_PLATFORM_DEVICE_H_
