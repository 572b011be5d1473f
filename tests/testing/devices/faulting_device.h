#ifndef STRATA_TESTS_TESTING_DEVICES_FAULTING_DEVICE_H_
#define STRATA_TESTS_TESTING_DEVICES_FAULTING_DEVICE_H_

#include <cstdint>
#include <string>

#include "strata/platform/calls/device_call.h"
#include "strata/platform/device.h"
#include "strata/tests/testing/devices/faulted_state.h"

namespace strata {

// The failures of the calls of one FaultingDevice.
class FaultSource {
 public:
  virtual ~FaultSource() = default;

  // False if the next call must be made as requested only.
  virtual bool MayFail() = 0;
  // The state that a failed call must not change, as text.
  virtual std::string Snapshot() = 0;
  // Makes the next call, which is `call`, fail at its `nth` step. Returns false
  // if calls have fewer steps; then none fails.
  virtual bool Arm(DeviceCall call, std::uint64_t nth) = 0;
  // After that call: no later call fails. Returns false if the call was made as
  // requested. Fails the test if a failed call may not return `status`.
  virtual bool Disarm(DeviceCall call, Status status) = 0;
};

// A device of FaultingPlatform; see there.
class FaultingDevice final : public Device {
 public:
  // A null source: the calls work even during a HeapFailure of the caller.
  FaultingDevice(Device* device, FaultedState* state, FaultSource* source)
      : device_(*device), state_(*state), source_(source) {}

  int ordinal() const override { return device_.ordinal(); }
  std::uintptr_t identity() const override { return device_.identity(); }
  const Caps& caps() const override { return device_.caps(); }

  Status MemGetInfo(std::size_t* free_bytes, std::size_t* total_bytes) override;
  Status Synchronize() override;

  Status StreamCreate(Stream* stream, unsigned flags) override;
  Status StreamDestroy(Stream stream) override;
  Stream LegacyStream() override { return device_.LegacyStream(); }
  Stream PerThreadStream() override { return device_.PerThreadStream(); }
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

  Device& device_;
  FaultedState& state_;
  FaultSource* const source_;
};

}  // namespace strata

#endif  // STRATA_TESTS_TESTING_DEVICES_FAULTING_DEVICE_H_
