#ifndef STRATA_TESTS_TESTING_DEVICES_FAULTING_DEVICE_H_
#define STRATA_TESTS_TESTING_DEVICES_FAULTING_DEVICE_H_

#include "strata/platform/device.h"
#include "strata/platform/sim/device/sim_device.h"
#include "strata/tests/testing/devices/faulted_state.h"

namespace strata {

// Cause of the failures of a FaultingPlatform's calls.
enum class Faults {
  kEveryCall,   // each call fails once, before it is made
  kCallersHeap  // none, even during a HeapFailure of the caller
};

// A device of FaultingPlatform; see there.
class FaultingDevice final : public Device {
 public:
  FaultingDevice(SimDevice* sim, FaultedState* state, Faults faults)
      : sim_(*sim), state_(*state), faults_(faults) {}

  int ordinal() const override { return sim_.ordinal(); }
  const Caps& caps() const override { return sim_.caps(); }

  Status MemGetInfo(std::size_t* free_bytes, std::size_t* total_bytes) override;
  Status Synchronize() override;

  Status StreamCreate(Stream* stream, unsigned flags) override;
  Status StreamDestroy(Stream stream) override;
  Stream LegacyStream() override { return sim_.LegacyStream(); }
  Stream PerThreadStream() override { return sim_.PerThreadStream(); }
  Status WrapStream(void* handle, Stream* stream) override;
  Status StreamSynchronize(Stream stream) override;
  Status StreamQuery(Stream stream) override;
  Status StreamWaitEvent(Stream stream, Event event, unsigned flags) override;
  Status LaunchHostFunc(Stream stream, HostFunction function,
                        void* argument) override;

  Status EventCreate(Event* event, unsigned flags) override;
  Status EventDestroy(Event event) override;
  Status EventRecord(Event event, Stream stream, unsigned flags) override;
  Status EventQuery(Event event) override;
  Status EventSynchronize(Event event) override;

  Status MemAlloc(DevicePtr* ptr, std::size_t bytes) override;
  Status MemFree(DevicePtr ptr) override;
  Status MallocHost(void** ptr, std::size_t bytes, unsigned flags) override;
  Status FreeHost(void* ptr) override;
  Status HostRegister(void* ptr, std::size_t bytes, unsigned flags) override;
  Status HostUnregister(void* ptr) override;
  Status MallocManaged(DevicePtr* ptr, std::size_t bytes,
                       unsigned flags) override;
  Status MemcpyAsync(DevicePtr target, DevicePtr source, std::size_t bytes,
                     Stream stream) override;
  Status MemsetAsync(DevicePtr ptr, int value, std::size_t bytes,
                     Stream stream) override;
  Status PointerAttributes(DevicePtr ptr, PointerInfo* info) override;
  Status EnablePeerAccess(int peer) override;
  Status CanAccessPeer(int peer, bool* can) override;

  Status DefaultMemPool(MemPool* pool) override;
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
  Status MallocFromPoolAsync(DevicePtr* ptr, std::size_t bytes, MemPool pool,
                             Stream stream) override;
  Status FreeAsync(DevicePtr ptr, Stream stream) override;
  Status PoolExport(MemPool pool, ShareType type,
                    Shareable* shareable) override;
  Status PoolImport(MemPool* pool, ShareType type,
                    const Shareable& shareable) override;

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
  Status ExportMemory(MemHandle handle, ShareType type,
                      Shareable* shareable) override;
  Status ImportMemory(MemHandle* handle, ShareType type,
                      const Shareable& shareable) override;
  Status RetainMemory(DevicePtr ptr, MemHandle* handle) override;

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
  Status GraphCreate(Graph* graph) override;
  Status GraphDestroy(Graph graph) override;
  Status GraphNodePredecessors(GraphNode node,
                               std::vector<GraphNode>* predecessors) override;
  Status GraphInstantiate(GraphExec* exec, Graph graph,
                          unsigned flags) override;
  Status GraphExecDestroy(GraphExec exec) override;
  Status GraphLaunch(GraphExec exec, Stream stream) override;
  Status GraphExecUpdate(GraphExec exec, Graph graph) override;
  Status GraphMemTrim() override;
  Status GraphMemAttribute(GraphMemAttributeKind kind,
                           std::uint64_t* value) override;
  Status UserObjectCreate(UserObject* object, void* pointer,
                          HostFunction destroy) override;
  Status GraphRetainUserObject(Graph graph, UserObject object,
                               bool move) override;
  Status UserObjectRelease(UserObject object) override;

 private:
  // Makes the call as the header of FaultingPlatform describes.
  template <class... Parameters, class... Arguments>
  Status Try(DeviceCall call, Status (Device::*method)(Parameters...),
             Arguments... arguments);
  // True if the device itself would refuse any call.
  bool RefusesAll();
  // Makes the call with an injected failure. Returns the status; kSuccess if
  // the device lacks the entry point.
  void Inject(DeviceCall call);
  void CheckInjected(DeviceCall call, Status status, bool counted);

  SimDevice& sim_;
  FaultedState& state_;
  const Faults faults_;
};

}  // namespace strata

#endif  // STRATA_TESTS_TESTING_DEVICES_FAULTING_DEVICE_H_
