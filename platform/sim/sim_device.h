#ifndef STRATA_PLATFORM_SIM_SIM_DEVICE_H_
#define STRATA_PLATFORM_SIM_SIM_DEVICE_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <vector>

#include "strata/platform/call_record.h"
#include "strata/platform/device.h"
#include "strata/platform/device_work.h"
#include "strata/platform/sim/address_space.h"
#include "strata/platform/sim/capacity_steps.h"
#include "strata/platform/sim/capture_set.h"
#include "strata/platform/sim/device_memory.h"
#include "strata/platform/sim/event_table.h"
#include "strata/platform/sim/fault_injector.h"
#include "strata/platform/sim/graph_action.h"
#include "strata/platform/sim/graph_heap.h"
#include "strata/platform/sim/graph_memory.h"
#include "strata/platform/sim/graph_table.h"
#include "strata/platform/sim/pool_table.h"
#include "strata/platform/sim/scheduler.h"
#include "strata/platform/sim/sim_leaks.h"
#include "strata/platform/sim/stream_table.h"

namespace strata {

class SimPlatform;

// A device that exists only on the host: addresses, accounting and rules are
// those of a GPU; nothing is computed.
//
// Model: addresses are none that the host maps. Memory is phantom unless the
//   platform's options say otherwise (frame_store.h): a device of any size
//   costs only its bookkeeping, and bytes written to it are gone. Work runs in
//   the order of streams, in threads that call, when the platform's progress
//   says (progress_policy.h): by default before its call returns. Work that
//   fails leaves an error that every later call returns. Free memory moves in
//   frames of 2 MiB, and an allocation fails exactly when no frame is left for
//   it (device_memory.h).
// Errors: stricter than a driver: a stream used after its destruction, or with
//   a recycled handle, is kInvalidResourceHandle. A call made by a function of
//   LaunchHostFunc is kNotPermitted. A call made with a Strata lock held
//   aborts the process.
// Threads: any thread; each call takes effect at once.
// Cost: under a microsecond; none grows with the number of live allocations
//   faster than the depth of a tree. Each completion of work that was queued
//   looks at all streams that have work.
// Source: cuda_semantics.md §1, §6.1-6.4.
class SimDevice final : public Device {
 public:
  // `memory_bytes` is at least a frame and at most kMaxDeviceMemoryBytes.
  SimDevice(SimPlatform* platform, int ordinal, std::uint64_t memory_bytes,
            std::uint64_t fault_seed, SimData data);
  ~SimDevice() override;

  int ordinal() const override { return ordinal_; }
  const Caps& caps() const override { return caps_; }

  Status MemGetInfo(std::size_t* free_bytes, std::size_t* total_bytes) override;
  Status Synchronize() override;

  Status StreamCreate(Stream* stream, unsigned flags) override;
  Status StreamDestroy(Stream stream) override;
  Stream LegacyStream() override;
  Stream PerThreadStream() override;
  Status WrapStream(void* handle, Stream* stream) override;
  Status StreamSynchronize(Stream stream) override;
  Status StreamQuery(Stream stream) override;
  Status StreamWaitEvent(Stream stream, Event event, unsigned flags) override;
  // `function` runs in a thread that calls the platform, not necessarily this
  // one: what it locks must not be held by a caller. While calls are checked
  // for hazards, other threads' calls wait for it.
  Status LaunchHostFunc(Stream stream, HostFunction function,
                        void* argument) override;

  Status EventCreate(Event* event, unsigned flags) override;
  Status EventDestroy(Event event) override;
  Status EventRecord(Event event, Stream stream, unsigned flags) override;
  Status EventQuery(Event event) override;
  Status EventSynchronize(Event event) override;

  // No bytes: kSuccess and a null address.
  Status MemAlloc(DevicePtr* ptr, std::size_t bytes) override;
  // Takes the start of an allocation of this device, managed memory or 0.
  Status MemFree(DevicePtr ptr) override;
  Status MallocHost(void** ptr, std::size_t bytes, unsigned flags) override;
  Status FreeHost(void* ptr) override;
  Status HostRegister(void* ptr, std::size_t bytes, unsigned flags) override;
  Status HostUnregister(void* ptr) override;
  Status MallocManaged(DevicePtr* ptr, std::size_t bytes,
                       unsigned flags) override;
  // Each end is what AddressSpace allows, or pageable host memory; any other
  // range is kInvalidValue. What is copied from pageable memory is read at the
  // call (kMemoryAllocation if the host has no room to keep it); a copy to it
  // is done when the call returns. Bytes that are not kept read as zeros.
  Status MemcpyAsync(DevicePtr target, DevicePtr source, std::size_t bytes,
                     Stream stream) override;
  Status MemsetAsync(DevicePtr ptr, int value, std::size_t bytes,
                     Stream stream) override;
  Status PointerAttributes(DevicePtr ptr, PointerInfo* info) override;
  Status EnablePeerAccess(int peer) override;
  Status CanAccessPeer(int peer, bool* can) override;

  // Virtual memory: addresses and memory are the platform's, whichever device
  // is asked. Granularities are kFrameBytes.
  Status Granularity(const MemProperties& properties, bool recommended,
                     std::size_t* bytes) override;
  Status ReserveRange(DevicePtr* ptr, std::size_t bytes, std::size_t alignment,
                      DevicePtr hint) override;
  Status FreeRange(DevicePtr ptr, std::size_t bytes) override;
  Status CreateMemory(MemHandle* handle, std::size_t bytes,
                      const MemProperties& properties) override;
  Status ReleaseMemory(MemHandle handle) override;
  Status MapRange(DevicePtr ptr, std::size_t bytes, std::size_t offset,
                  MemHandle handle) override;
  Status UnmapRange(DevicePtr ptr, std::size_t bytes) override;
  Status SetAccess(DevicePtr ptr, std::size_t bytes,
                   const AccessDescriptor* access, std::size_t count) override;
  Status GetAccess(DevicePtr ptr, Location location, Access* access) override;
  // A descriptor is the caller's to close, and is good within the process.
  Status ExportMemory(MemHandle handle, ShareType type,
                      Shareable* shareable) override;
  Status ImportMemory(MemHandle* handle, ShareType type,
                      const Shareable& shareable) override;
  Status RetainMemory(DevicePtr ptr, MemHandle* handle) override;
  // Pools (sim_device_pools.cc). Each call takes pools and streams of any
  // device of the platform.
  Status DefaultMemPool(MemPool* pool) override;
  // The pool is on the device that the properties name.
  Status PoolCreate(MemPool* pool, const MemProperties& properties,
                    std::size_t max_bytes) override;
  Status PoolDestroy(MemPool pool) override;
  Status PoolTrimTo(MemPool pool, std::size_t keep_bytes) override;
  Status PoolSetAttribute(MemPool pool, PoolAttribute attribute,
                          std::uint64_t value) override;
  Status PoolGetAttribute(MemPool pool, PoolAttribute attribute,
                          std::uint64_t* value) override;
  Status PoolSetAccess(MemPool pool, const AccessDescriptor* access,
                       std::size_t count) override;
  // No bytes: kSuccess and a null address.
  Status MallocFromPoolAsync(DevicePtr* ptr, std::size_t bytes, MemPool pool,
                             Stream stream) override;
  // Takes the start of pool memory or of a MemAlloc.
  Status FreeAsync(DevicePtr ptr, Stream stream) override;
  Status PoolExport(MemPool pool, ShareType type,
                    Shareable* shareable) override;
  Status PoolImport(MemPool* pool, ShareType type,
                    const Shareable& shareable) override;

  // Capture (sim_device_capture.cc). A call that a capture refuses, or that
  // ends one without a graph, does that and nothing else.
  Status StreamBeginCapture(Stream stream, CaptureMode mode) override;
  Status StreamBeginCaptureToGraph(Stream stream, Graph graph,
                                   const GraphNode* dependencies,
                                   std::size_t count,
                                   CaptureMode mode) override;
  Status StreamEndCapture(Stream stream, Graph* graph) override;
  Status StreamIsCapturing(Stream stream, CaptureStatus* status) override;
  Status StreamCaptureInfo(Stream stream, CaptureInfo* info) override;
  Status StreamUpdateCaptureDependencies(Stream stream,
                                         const GraphNode* dependencies,
                                         std::size_t count,
                                         bool replace) override;
  Status ThreadExchangeCaptureMode(CaptureMode* mode) override;

  // Graphs (sim_device_graphs.cc). Handles are good on any device of the
  // platform.
  Status GraphCreate(Graph* graph) override;
  Status GraphDestroy(Graph graph) override;
  Status GraphNodePredecessors(GraphNode node,
                               std::vector<GraphNode>* predecessors) override;
  Status GraphInstantiate(GraphExec* exec, Graph graph,
                          unsigned flags) override;
  Status GraphExecDestroy(GraphExec exec) override;
  Status GraphLaunch(GraphExec exec, Stream stream) override;
  Status GraphExecUpdate(GraphExec exec, Graph graph) override;
  // In bytes, of whole frames.
  Status GraphMemTrim() override;
  Status GraphMemAttribute(GraphMemAttributeKind kind,
                           std::uint64_t* value) override;
  // `destroy` runs in a thread that makes a later call.
  Status UserObjectCreate(UserObject* object, void* pointer,
                          HostFunction destroy) override;
  Status GraphRetainUserObject(Graph graph, UserObject object,
                               bool move) override;
  Status UserObjectRelease(UserObject object) override;

  // Modelled time between the ends of the work before two records. Unless
  // progress is timed, work takes none: it is the time of the calls between.
  // Not an entry point: neither counted, observed nor refused by a capture.
  //
  // Errors: kInvalidResourceHandle if one of the events is none, is of another
  //   device than the other, keeps no time or was never recorded;
  //   kCapturedEvent; kNotReady.
  Status EventElapsed(Event start, Event end, std::int64_t* ns);

  // The nodes of `graph` in the order of their making, or those without a
  // predecessor. Not an entry point, likewise. kInvalidValue if there is no
  // such graph.
  Status GraphNodes(Graph graph, bool roots_only,
                    std::vector<GraphNode>* nodes);

  // The memory that `ptr` lies in: an allocation, a range of the host, or
  // mappings without a hole. Not an entry point, likewise. kInvalidValue if
  // there is none.
  Status AddressRange(DevicePtr ptr, DevicePtr* base, std::uint64_t* bytes);

  // The bytes of [ptr, ptr + bytes) as the host sees them, for functions of
  // LaunchHostFunc that stand in for kernels. Null if no bytes are kept, or if
  // there is no such memory: that of a pool is memory until the work before its
  // FreeAsync is done. Rights of devices are not asked for. Not an entry point:
  // neither counted nor refused.
  //
  // Threads: any thread.        Cost: as HostViews if the frames are scattered.
  // Lifetime: the pointer is good until any of the range is freed or unmapped,
  //   and is the same each time.
  void* HostView(DevicePtr ptr, std::size_t bytes);

  // What DeviceWork does at its turn: kIllegalAddress, and nothing done, if
  // this device may not do it with each of the ranges. Under the platform's
  // mutex.
  Status ExecuteWork(const WorkRange* ranges, std::size_t count,
                     std::uint64_t pattern);

  // Time that the successful calls so far would have taken (cost_table.h).
  std::uint64_t modelled_ns() const;
  // The most device memory since the last reset that MemGetInfo would have
  // shown as taken, without the memory of other processes.
  std::uint64_t peak_used_bytes() const;
  // Sets that peak to the bytes that are used now.
  void ResetPeakUsedBytes();
  // The most managed memory that was there at once, wherever it was: no limit
  // but the host's.
  std::uint64_t peak_managed_bytes() const;

  // Makes calls fail from now on. An injected failure is counted and observed,
  // and has no other effect.
  //
  // Errors: as FaultInjector::Add.
  void AddFault(const FaultRule& rule);
  void ClearFaults();
  // Another process takes or gives back memory, as the step says: at most what
  // is free, or what others have taken.
  void AddCapacityStep(const CapacityStep& step) { capacity_.Add(step); }

  // Runs the first piece of work of `stream`, whatever the progress. Returns
  // false if there is none that can run, or `stream` is not of this device.
  bool Step(const Stream& stream);
  // Runs all work of this device that has been submitted.
  void StepAll();
  // Pieces of work of this device that are not done.
  std::uint64_t PendingCount() const;
  // The error that work has left, or kSuccess.
  Status sticky_error() const {
    return sticky_error_.load(std::memory_order_acquire);
  }

  // DeviceWork::Enqueue. Not an entry point of Device: neither counted nor
  // observed, and no fault makes it fail.
  Status EnqueueWork(const Stream& stream, const WorkRange* ranges,
                     std::size_t count, std::uint64_t busy_ns,
                     std::uint64_t pattern);

  // DeviceWork::Launch, likewise.
  Status LaunchKernel(const Stream& stream, const KernelAction& kernel);

  // Live device allocations, pools and what was allocated from them, host
  // ranges and reservations made by this device, memory of it that is there to
  // be mapped, streams, events.
  SimLeaks Leaks() const;

 protected:
  std::uint64_t NowNs() const override;

 private:
  // The frame of every entry point: counts the call, refuses it or runs
  // `body(CallRecord*)`, charges it for `*charged_bytes` (null: call.bytes) and
  // tells the observer. `stream_device` is that of the call's stream.
  template <class Body>
  Status Run(CallRecord call, Body body,
             const std::size_t* charged_bytes = nullptr,
             std::int32_t stream_device = -1);
  // The same for a call that takes only streams of this device.
  template <class Body>
  Status Run(const Stream& stream, CallRecord call, Body body);
  // While calls are checked, observers see them in the order in which they took
  // effect: nobody else's takes effect while this is held.
  std::unique_lock<std::recursive_mutex> HoldOrder();
  void Enter(DeviceCall call);
  void Apply(const CapacityStep& step);
  Status Refusal(const CallRecord& call, std::int32_t stream_device);
  // What captures refuse the call with; its device and thread are filled in.
  Status CheckCaptures(const CaptureRule& rule, CaptureSet::Subject subject);
  void Charge(DeviceCall call, std::size_t bytes);
  void PassTime(std::uint64_t ns);

  // kSuccess, or kInvalidResourceHandle.
  Status CheckStream(const Stream& stream) const;
  // The same for a stream of any device of the platform. Under mutex_.
  bool AcceptsAnyStream(const Stream& stream) const;
  // The pool of any device with this handle, or null. Under mutex_.
  StreamPool* FindPool(MemPool pool) const;
  // Makes pools give back what they keep, if that is enough.
  bool MakeRoomIn(const Location& location, std::size_t bytes);
  // kSuccess if `pool` can be given these rights.
  Status CheckPoolAccess(const StreamPool& pool,
                         const AccessDescriptor& access) const;
  // Submits what a call of a pool is in its stream: work that takes no time,
  // but has its place in the order. The live block of `pools` at `ptr` is then
  // fresh, or else freed.
  void SubmitMark(const Stream& stream, PoolTable* pools, DevicePtr ptr,
                  bool fresh, SimLock* lock);
  // What `event` of any device was recorded after, or null. Under mutex_.
  EventState* FindEvent(Event event) const;
  // The host has waited for `waited`, and the pools of this device learn it.
  void TellPools(const StreamSnapshot& waited);

  // Submits `work`, which returns a Status and takes no lock. Nothing runs on a
  // device with a sticky error (sim_device_run.h).
  template <class Work>
  void Submit(const Stream& stream, std::uint64_t cost_ns, Work work,
              SimLock* lock);
  Status SubmitCopy(DevicePtr target, DevicePtr source, std::size_t bytes,
                    const Stream& stream, SimLock* lock);
  void NoteOutcome(Status status);
  // For calls that free memory at once: what they return if not kSuccess.
  Status AwaitBeforeFree(SimLock* lock);

  // The capture that `stream` takes part in, or null. Under mutex_.
  SimCapture* CaptureOf(const Stream& stream) const;
  // Makes `action` the next node of `capture` in `stream`.
  Status AddNode(SimCapture* capture, const Stream& stream,
                 std::uint64_t cost_ns, GraphAction action, CallRecord* seen);
  Status AddEventNode(SimCapture* capture, const Stream& stream, unsigned flags,
                      GraphAction action, CallRecord* seen);
  Status BeginCapture(const Stream& stream, CaptureMode mode, Graph graph,
                      const GraphNode* dependencies, std::size_t count,
                      CallRecord* seen);
  // The device whose memory `ptr` is, or -1. Under mutex_.
  int OwnerOfMemory(DevicePtr ptr) const;

  // Submits what an instantiated graph does (sim_device_launch.cc).
  Status Launch(SimExec* exec, const Stream& stream, SimLock* lock);
  bool HasItsEvents(const ExecPlan& plan) const;
  StreamSnapshot BeginLaunch(const SimExec& exec, const Stream& stream,
                             const std::vector<GraphMemory::Binding>& bindings);
  void SubmitNodes(const SimExec& exec);
  void RunAction(const GraphAction& action, SimLock* lock);
  // Releases the lock while the function runs.
  void CallHostFunction(HostFunction function, void* argument, SimLock* lock);
  // What EnqueueWork and LaunchKernel have in common (sim_work.cc).
  template <class Body>
  Status RunLaunch(const Stream& stream, const WorkRange* ranges,
                   std::size_t count, Body submit);
  void RunKernel(const KernelAction& kernel, SimLock* lock);
  // HostView of what is memory, also for work before a free in its stream.
  // Under the platform's mutex.
  void* ViewOf(DevicePtr ptr, std::size_t bytes);
  // Whether work of this device may use the ranges. Under the platform's mutex.
  bool MayWork(const WorkRange* ranges, std::size_t count) const;

  // Memory nodes (sim_device_graph_memory.cc). Under mutex_.
  Status CaptureAlloc(SimCapture* capture, const Stream& stream,
                      std::uint64_t bytes, const StreamPool& pool,
                      DevicePtr* ptr, CallRecord* seen);
  GraphRights RightsOf(const StreamPool& pool) const;
  Status CaptureFree(SimCapture* capture, const Stream& stream, DevicePtr ptr,
                     CallRecord* seen);
  bool MayFreeOwn(const SimCapture& capture, const Stream& stream,
                  const GraphHeap& heap, DevicePtr ptr) const;
  bool MayFreeForeign(const GraphMemoryUse& use, DevicePtr ptr) const;
  // Frees what a launch has allocated: in a stream, or at once.
  Status FreeGraphMemory(DevicePtr ptr, const Stream& stream, SimLock* lock);
  Status FreeGraphMemoryNow(DevicePtr ptr);
  // The frames of a launch: planned, which may fail; put to use when it begins;
  // and kept.
  Status PlanMemory(const SimExec& exec, const Stream& stream,
                    std::vector<GraphMemory::Binding>* bindings);
  std::optional<GraphMemory::Binding> PlanHeap(const GraphHeapUse& use,
                                               const Stream& stream);
  void BeginMemory(const SimExec& exec, const StreamSnapshot& submitted,
                   const std::vector<GraphMemory::Binding>& bindings);
  void CommitMemory(const SimExec& exec,
                    const std::vector<GraphMemory::Binding>& bindings);
  void BeginAllocation(const AllocAction& alloc);
  void EndAllocation(DevicePtr ptr);

  // Copies and fills (sim_device_copy.cc): the check when they are
  // submitted, and what they do when their turn comes: nothing but
  // kIllegalAddress if a range is no longer what it has to be. Under mutex_.
  Status CheckCopy(AddressSpace::When when, DevicePtr target, DevicePtr source,
                   std::size_t bytes) const;
  Status ExecuteCopy(DevicePtr target, DevicePtr source, std::size_t bytes);
  Status CheckFill(AddressSpace::When when, DevicePtr ptr,
                   std::size_t bytes) const;
  Status ExecuteFill(DevicePtr ptr, int value, std::size_t bytes);

  SimPlatform* const platform_;
  const int ordinal_;
  const std::uint64_t instance_;  // unique for the life of the process
  Caps caps_;
  FaultInjector faults_;
  CapacitySchedule capacity_;
  std::atomic<std::uint64_t> modelled_ns_{0};
  std::atomic<Status> sticky_error_{Status::kSuccess};

  std::mutex& mutex_;         // the platform's
  DeviceMemory memory_;       // guarded by mutex_
  PoolTable pools_;           // guarded by mutex_
  GraphMemory graph_memory_;  // guarded by mutex_
  Scheduler& scheduler_;      // the platform's; guarded by mutex_
  StreamTable streams_;       // guarded by mutex_
  EventTable events_;         // guarded by mutex_
  std::set<int> peers_;       // peer access enabled; guarded by mutex_
};

}  // namespace strata

#endif  // STRATA_PLATFORM_SIM_SIM_DEVICE_H_
