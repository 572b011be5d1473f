#ifndef STRATA_PLATFORM_SIM_DEVICE_SIM_DEVICE_H_
#define STRATA_PLATFORM_SIM_DEVICE_SIM_DEVICE_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "strata/platform/calls/call_frame.h"
#include "strata/platform/calls/call_record.h"
#include "strata/platform/device.h"
#include "strata/platform/device_work.h"
#include "strata/platform/sim/faults/capacity_steps.h"
#include "strata/platform/sim/faults/fault_injector.h"
#include "strata/platform/sim/faults/sim_leaks.h"
#include "strata/platform/sim/graphs/capture_set.h"
#include "strata/platform/sim/graphs/graph_action.h"
#include "strata/platform/sim/graphs/graph_heap.h"
#include "strata/platform/sim/graphs/graph_memory.h"
#include "strata/platform/sim/graphs/graph_table.h"
#include "strata/platform/sim/memory/address_space.h"
#include "strata/platform/sim/memory/device_memory.h"
#include "strata/platform/sim/pools/pool_table.h"
#include "strata/platform/sim/streams/event_table.h"
#include "strata/platform/sim/streams/scheduler.h"
#include "strata/platform/sim/streams/stream_table.h"

namespace strata::sim {

class SimPlatform;

// A device that exists only on the host. Addresses, accounting and rules are
// those of a GPU; nothing is computed.
//
// Model: the host maps none of the addresses. Memory is phantom unless the
//   platform's options say otherwise (frame_store.h): a device of any size
//   costs only its bookkeeping. It loses the bytes of writes: of all writes, or
//   of all except small ones.
//   Work runs in stream order, in the calling threads, at a time that the
//   platform's progress selects (progress_policy.h). By default it runs before
//   its call returns. Work that fails leaves an error that every later call
//   returns.
//   Free memory changes in frames of 2 MiB. An allocation fails exactly when
//   not enough frames are left for it (device_memory.h).
// Errors: stricter than a driver: a stream used after its destruction, or with
//   a recycled handle, is kInvalidResourceHandle. A call made by a function of
//   LaunchHostFunc is kNotPermitted. A call made with a Strata lock held aborts
//   the process.
// Threads: any thread; each call takes effect at once.
// Cost: under a microsecond. The cost grows with the number of live allocations
//   at most as the depth of a tree. Each completion of queued work visits all
//   streams that have work.
// Source: cuda_semantics.md §1, §6.1-6.4.
class SimDevice final : public Device, public DeviceWork {
 public:
  // `memory_bytes` is at least one frame and at most kMaxDeviceMemoryBytes.
  SimDevice(SimPlatform* platform, int ordinal, std::uint64_t memory_bytes,
            std::uint64_t fault_seed, SimData data);
  ~SimDevice() override;

  int ordinal() const override { return ordinal_; }
  const Caps& caps() const override { return caps_; }

  Stream LegacyStream() override;
  Stream PerThreadStream() override;
  // The rules of single calls, beside those of device.h:
  // - LaunchHostFunc: the function runs in any thread that calls the platform.
  //   So a calling thread must not hold a lock that the function acquires.
  //   While calls are checked for hazards, other threads' calls wait for it.
  // - MemAlloc and MallocFromPoolAsync of 0 bytes: kSuccess and a null address.
  // - MemFree: the start of an allocation of this device, managed memory, or 0.
  // - MemcpyAsync: each end is memory that AddressSpace allows, or pageable
  //   host memory; any other range is kInvalidValue. Pageable sources are read
  //   at the call (kMemoryAllocation if the host has no memory to store them).
  //   A copy to pageable memory is complete when the call returns. Bytes that
  //   are not stored read as zeros.
  // - Virtual memory: all devices of a platform share addresses and memory.
  //   Granularities are kFrameBytes.
  // - ExportMemory: the caller closes the descriptor. The descriptor is valid
  //   within the process; if the device stores bytes, in every process of the
  //   machine.
  // - Pools: each call accepts pools and streams of any device of the platform.
  //   PoolCreate creates the pool on the device in the properties. FreeAsync
  //   accepts the start of pool memory or of a MemAlloc.
  // - Capture: a call that a capture refuses, or that ends a capture without a
  //   graph, has no other effect.
  // - Graphs: handles are valid on any device of the platform. GraphMemTrim and
  //   GraphMemAttribute count bytes of whole frames.
  // - UserObjectCreate: the destructor runs in a thread that makes a later
  //   call.
#define STRATA_DEVICE_CALL(method, name, parameters, arguments, operands) \
  Status method parameters override;
#include "strata/platform/calls/device_calls.def"
#undef STRATA_DEVICE_CALL

  // As the entry point MemcpyAsync. If the copy reads device or managed memory
  // into the host, `reads` counts it when it runs, also at each launch of a
  // graph. `reads` outlives the device, or is null.
  Status MemcpyAsync(DevicePtr target, DevicePtr source, std::size_t bytes,
                     Stream stream, ReadCounter* reads);

  // Modelled time between the ends of the work before two records. Unless
  // progress is timed, the result is the time of the calls between, and of the
  // device's work between as if one operation ran after another. Not an entry
  // point: neither counted, observed nor refused by a capture.
  //
  // Errors: kInvalidResourceHandle if an event does not exist, keeps no time or
  //   was never recorded, or if the events are of two devices; kCapturedEvent;
  //   kNotReady.
  Status EventElapsed(Event start, Event end, std::int64_t* ns);

  // The nodes of `graph` in the order of their creation, or only the nodes
  // without a predecessor. Returns kInvalidValue if there is no such graph. Not
  // an entry point, like EventElapsed.
  Status GraphNodes(Graph graph, bool roots_only,
                    std::vector<GraphNode>* nodes);

  // The memory that contains `ptr`: an allocation, a range of the host, or
  // mappings without a hole. Returns kInvalidValue if there is none. Not an
  // entry point, like EventElapsed.
  Status AddressRange(DevicePtr ptr, DevicePtr* base, std::uint64_t* bytes);

  // The host address of the bytes of [ptr, ptr + bytes), for functions of
  // LaunchHostFunc that stand in for kernels. Null if bytes are not stored, or
  // if there is no such memory. Memory of a pool exists until the work before
  // its FreeAsync is complete. Rights of devices are not checked. Not an entry
  // point: neither counted nor refused.
  //
  // Threads: any thread.
  // Cost: as HostViews if the frames are scattered.
  // Lifetime: the pointer is valid until any of the range is freed or unmapped.
  //   Repeated calls return the same pointer.
  void* HostView(DevicePtr ptr, std::size_t bytes);

  // The effect of DeviceWork when it runs. Returns kIllegalAddress, without any
  // effect, if this device may not access one of the ranges as required. Under
  // the platform's mutex.
  Status ExecuteWork(const WorkRange* ranges, std::size_t count,
                     std::uint64_t pattern);

  // Modelled time of the successful calls so far (cost_table.h).
  std::uint64_t modelled_ns() const {
    return modelled_ns_.load(std::memory_order_relaxed);
  }
  // Maximum since the last reset of the device memory in use, as MemGetInfo
  // would show it, without the memory of other processes.
  std::uint64_t peak_used_bytes() const;
  // Sets that peak to the bytes in use now.
  void ResetPeakUsedBytes();
  // Peak of the managed memory, wherever its pages were. Only the host limits
  // managed memory.
  std::uint64_t peak_managed_bytes() const;

  // Makes calls fail from now on. An injected failure is counted and observed,
  // and has no other effect.
  //
  // Errors: as FaultInjector::Add.
  void AddFault(const FaultRule& rule) { faults_.Add(rule); }
  void ClearFaults() { faults_.Clear(); }
  // Another process allocates or frees memory, as the step says: at most the
  // free memory, or the memory of other processes.
  void AddCapacityStep(const CapacityStep& step) { capacity_.Add(step); }

  // Runs the first operation of `stream`, for any kind of progress. Returns
  // false if none can run, or if `stream` is not of this device.
  bool Step(const Stream& stream);
  // Runs all submitted work of this device.
  void StepAll();
  // Number of incomplete operations of this device.
  std::uint64_t PendingCount() const;
  // The error of failed work, or kSuccess.
  Status sticky_error() const {
    return sticky_error_.load(std::memory_order_acquire);
  }

  // DeviceWork: its accesses are checked, and its bytes move if the device
  // stores bytes. Not entry points of Device: neither counted nor observed, and
  // no fault affects them.
  Status Enqueue(Stream stream, const WorkRange* ranges, std::size_t count,
                 std::uint64_t busy_ns, std::uint64_t pattern) override;
  Status Launch(Stream stream, const WorkRange* ranges, std::size_t count,
                HostKernel kernel, void* argument) override;

  // Live objects of this device: allocations, pools and their allocations, host
  // ranges and reservations that it made, its memory for mapping, streams,
  // events.
  SimLeaks Leaks() const;

 protected:
  std::uint64_t NowNs() const override;

 private:
  struct Call : CallRecord {
    // The bytes that determine the cost of the call, if not `bytes`.
    std::optional<std::size_t> charged_bytes = std::nullopt;
  };

  // The effects of the entry points (call_frame.h). They acquire the locks that
  // they need.
#define STRATA_DEVICE_CALL(method, name, parameters, arguments, operands) \
  Status Do##method STRATA_EFFECT_PARAMETERS parameters;
#include "strata/platform/calls/device_calls.def"
#undef STRATA_DEVICE_CALL
  // The effect of both MemcpyAsync.
  Status DoMemcpyAsync(Call* seen, DevicePtr target, DevicePtr source,
                       std::size_t bytes, Stream stream, ReadCounter* reads);

  // The frame of every entry point: counts the call, refuses it or runs
  // `effect(Call*)`, charges its cost and reports to the observers. `stream` is
  // the stream of the call, or null.
  template <class Effect>
  Status Run(DeviceCall name, CallRecord operands, const Stream* stream,
             Effect effect);
  // While calls are checked, observers receive them in the order in which they
  // took effect: no call of another thread takes effect while this is held.
  std::unique_lock<std::recursive_mutex> HoldOrder();
  void Enter(DeviceCall call);
  void Apply(const CapacityStep& step);
  Status Refusal(const CallRecord& call, const Stream* stream);
  // The status with which captures refuse the call. Fills in device and thread
  // of `subject`.
  Status CheckCaptures(const CaptureRule& rule, CaptureSet::Subject subject);
  void PassTime(std::uint64_t ns);

  // True for a valid stream of any device of the platform. Under mutex_.
  bool AcceptsAnyStream(const Stream& stream) const;
  // The pool of any device with this handle, or null. Under mutex_.
  StreamPool* FindPool(MemPool pool) const;
  // Makes pools release idle memory, if that provides enough. Returns true if
  // it does.
  bool MakeRoomIn(const Location& location, std::size_t bytes);
  // kSuccess if these rights can be set for `pool`.
  Status CheckPoolAccess(const StreamPool& pool,
                         const AccessDescriptor& access) const;
  // Submits the part of a pool call that runs in its stream. It takes no time,
  // but has its place in the order. It marks the live block of `pools` at `ptr`
  // as fresh or as freed.
  void SubmitMark(const Stream& stream, PoolTable* pools, DevicePtr ptr,
                  bool fresh, SimLock* lock);
  // The state of the last record of `event`, of any device, or null. Under
  // mutex_.
  EventState* FindEvent(Event event) const;
  // `event` is recorded in `stream` now. Under mutex_.
  void NoteRecord(const Stream& stream, EventState* event);
  // Reports to the pools of this device that the host has waited for `waited`.
  void TellPools(const StreamSnapshot& waited);

  // Submits `work`, which returns a Status and acquires no lock. Nothing runs
  // on a device with a sticky error.
  template <class Work>
  void Submit(const Stream& stream, std::uint64_t cost_ns, Work work,
              SimLock* lock) {
    scheduler_.Submit(
        stream, cost_ns,
        [this, work = std::move(work)]() mutable {
          if (sticky_error() == Status::kSuccess) NoteOutcome(work());
        },
        lock);
  }
  // True if the device stores the bytes of a copy to `target`.
  bool StoresCopy(DevicePtr target, std::size_t bytes) const;
  Status SubmitCopy(CopyAction copy, const Stream& stream, SimLock* lock);
  void NoteOutcome(Status status);
  // For calls that free memory at once: waits if the policy requires it.
  // Returns the status of the call if not kSuccess.
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
  // The device that owns the memory at `ptr`, or -1. Under mutex_.
  int OwnerOfMemory(DevicePtr ptr) const;

  // Submits the work of an instantiated graph (sim_device_launch.cc).
  Status LaunchExec(SimExec* exec, const Stream& stream, SimLock* lock);
  bool HasItsEvents(const ExecPlan& plan) const;
  StreamSnapshot BeginLaunch(const SimExec& exec, const Stream& stream,
                             const std::vector<GraphMemory::Binding>& bindings);
  void SubmitNodes(const SimExec& exec);
  void RunAction(const GraphAction& action, SimLock* lock);
  // Releases the lock while the function runs.
  void CallHostFunction(HostFunction function, void* argument, SimLock* lock);
  // Common part of Enqueue and Launch (sim_device_work.cc).
  template <class Body>
  Status RunLaunch(const Stream& stream, const WorkRange* ranges,
                   std::size_t count, Body submit);
  void RunKernel(const KernelAction& kernel, SimLock* lock);
  // Makes the written ranges of a kernel unknown. The kernel does not run,
  // because its memory stores no bytes.
  void ForgetWritten(const KernelAction& kernel);
  // HostView for existing memory, also for work before a free in its stream.
  // Under the platform's mutex.
  void* ViewOf(DevicePtr ptr, std::size_t bytes);
  // True if work of this device may use the ranges. Under the platform's mutex.
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
  // Frees an allocation of a launch: in a stream, or at once.
  Status FreeGraphMemory(DevicePtr ptr, const Stream& stream, SimLock* lock);
  Status FreeGraphMemoryNow(DevicePtr ptr);
  // The steps of the memory of a launch. PlanMemory selects frames, and may
  // fail. BeginMemory orders the launch after earlier uses, and binds the
  // frames when the launch runs. CommitMemory records the use by this launch.
  Status PlanMemory(const SimExec& exec, const Stream& stream,
                    std::vector<GraphMemory::Binding>* bindings);
  std::optional<GraphMemory::Binding> PlanHeap(const GraphHeapUse& use,
                                               const Stream& stream);
  void BeginMemory(const SimExec& exec, const StreamSnapshot& submitted,
                   const std::vector<GraphMemory::Binding>& bindings);
  void CommitMemory(const SimExec& exec,
                    const std::vector<GraphMemory::Binding>& bindings);
  // The graph memory of the device that owns `ptr`, an address of such memory.
  GraphMemory& GraphMemoryOf(DevicePtr ptr) const;

  // Copies and fills (sim_device_copy.cc): the check at submission, and the
  // effect when they run. The effect is kIllegalAddress and nothing else if a
  // range is no longer valid. Under mutex_.
  bool MayCopy(AddressSpace::When when, DevicePtr target, DevicePtr source,
               std::size_t bytes) const;
  Status ExecuteCopy(const CopyAction& copy);
  // Counts a copy that read `unknown_bytes` bytes that are not stored.
  void CountRead(const CopyAction& copy, std::uint64_t unknown_bytes) const;
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

}  // namespace strata::sim

namespace strata {

using sim::SimDevice;

}  // namespace strata

#endif  // STRATA_PLATFORM_SIM_DEVICE_SIM_DEVICE_H_
