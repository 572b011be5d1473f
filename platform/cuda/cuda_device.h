#ifndef STRATA_PLATFORM_CUDA_CUDA_DEVICE_H_
#define STRATA_PLATFORM_CUDA_CUDA_DEVICE_H_

#include <cuda.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "strata/platform/calls/call_record.h"
#include "strata/platform/cuda/cuda_context.h"
#include "strata/platform/cuda/cuda_driver.h"
#include "strata/platform/device.h"

namespace strata {

class CudaPlatform;

// A GPU, through its driver.
//
// Model: works in the device's primary context, the one that the runtime uses.
//   Leaves the current device and last error of the calling thread as they were
//   (cuda_context.h, cuda_driver.h). Handles are CUDA's own, so streams and
//   events of the runtime can be passed in. The null handle always means the
//   legacy stream here, however the caller was compiled (cuda_semantics.md S5).
//   A Stream carries one of the two explicit handles instead. Where the runtime
//   and the driver differ (no bytes, a null address), calls behave as the
//   runtime.
// Errors: kInvalidResourceHandle for a Stream of another device, for a
//   per-thread Stream of another thread, and for a null event. The handle of
//   such a Stream would name a stream of this device or thread. Other destroyed
//   handles are undefined behaviour, as in CUDA. A Status may be a number that
//   Status does not name. After cudaDeviceReset every call fails.
// Threads: any thread. A call made with a Strata lock held aborts the process.
// Cost: as the driver's, plus some tens of nanoseconds. The first call that
//   needs the context creates it: hundreds of milliseconds.
// Source: cuda_semantics.md §1-4; CUDA 13.0 cuda.h.
class CudaDevice final : public Device {
 public:
  CudaDevice(CudaPlatform* platform, int ordinal, CUdevice device);

  int ordinal() const override { return ordinal_; }
  // Shared by every CudaPlatform of the process. No address is that low.
  std::uintptr_t identity() const override {
    return static_cast<std::uintptr_t>(ordinal_) + 1;
  }
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

  // For CudaWork. Returns kSuccess, or kInvalidResourceHandle if the handle
  // does not name this stream in this thread.
  Status CheckStream(const Stream& stream) const;
  CudaContext& context() { return context_; }

 private:
  // The frame of every entry point: counts the call, runs `body(CallRecord*)`
  // with the context current, and reports to the observers.
  template <class Body>
  Status Run(CallRecord call, Body body);
  // Like Run, for a call on a stream. The stream is checked before `body` runs.
  template <class Body>
  Status RunOn(const Stream& stream, CallRecord call, Body body);
  void Enter(DeviceCall call);
  Caps ReadCaps() const;
  // Returns 0 if the driver does not report the attribute.
  int ValueOf(CUdevice_attribute attribute) const;
  bool Has(CUdevice_attribute attribute) const {
    return ValueOf(attribute) != 0;
  }
  // The calling thread's uid for its per-thread stream.
  std::uint64_t PerThreadUid() const;

  CudaPlatform* const platform_;
  const CudaDriver& driver_;
  const int ordinal_;
  const CUdevice device_;
  const std::uint64_t instance_;  // unique for the life of the process
  const Caps caps_;
  CudaContext context_;
};

}  // namespace strata

#endif  // STRATA_PLATFORM_CUDA_CUDA_DEVICE_H_
