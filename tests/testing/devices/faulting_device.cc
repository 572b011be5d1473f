#include "strata/tests/testing/devices/faulting_device.h"

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <string>
#include <tuple>
#include <type_traits>

#include "strata/tests/testing/heap_call_counter.h"

namespace strata {
namespace {

// The bytes that an out-parameter points to. Other arguments have none.
template <class Argument>
class OutBytes {
 public:
  explicit OutBytes(Argument argument) : argument_(argument) {
    if constexpr (kIsOut) {
      if (argument != nullptr) {
        // Also for types with a constructor: the bytes are only compared.
        std::memcpy(bytes_.data(), static_cast<const void*>(argument),
                    bytes_.size());
      }
    }
  }

  bool Unchanged() const {
    if constexpr (kIsOut) {
      return argument_ == nullptr ||
             std::memcmp(bytes_.data(), argument_, bytes_.size()) == 0;
    }
    return true;
  }

 private:
  using Target = std::remove_pointer_t<Argument>;
  static constexpr bool kIsOut = std::is_pointer_v<Argument> &&
                                 std::is_object_v<Target> &&
                                 !std::is_const_v<Target>;
  static constexpr std::size_t Size() {
    if constexpr (kIsOut) return sizeof(Target);
    return 1;
  }

  Argument argument_;
  std::array<unsigned char, Size()> bytes_{};
};

}  // namespace

template <class... Parameters, class... Arguments>
Status FaultingDevice::Try(DeviceCall call,
                           Status (Device::*method)(Parameters...),
                           Arguments... arguments) {
  const HeapFailure::Pause pause;
  if (source_ == nullptr || !source_->MayFail()) {
    return (device_.*method)(arguments...);
  }
  for (std::uint64_t nth = 1;; ++nth) {
    const std::string before = source_->Snapshot();
    const std::tuple<OutBytes<Arguments>...> out(
        OutBytes<Arguments>{arguments}...);
    if (!source_->Arm(call, nth)) return (device_.*method)(arguments...);
    const Status status = (device_.*method)(arguments...);
    if (!source_->Disarm(call, status)) return status;
    const bool unchanged = std::apply(
        [](const auto&... one) { return (one.Unchanged() && ...); }, out);
    EXPECT_TRUE(unchanged) << DeviceCallName(call)
                           << " failed and wrote to an out-parameter";
    EXPECT_EQ(before, source_->Snapshot())
        << DeviceCallName(call) << " failed and changed something";
  }
}

Status FaultingDevice::MemGetInfo(std::size_t* free_bytes,
                                  std::size_t* total_bytes) {
  return Try(DeviceCall::kMemGetInfo, &Device::MemGetInfo, free_bytes,
             total_bytes);
}

Status FaultingDevice::Synchronize() {
  return Try(DeviceCall::kSynchronize, &Device::Synchronize);
}

Status FaultingDevice::StreamCreate(Stream* stream, unsigned flags) {
  const Status status =
      Try(DeviceCall::kStreamCreate, &Device::StreamCreate, stream, flags);
  if (status == Status::kSuccess) state_.Add(*stream);
  return status;
}

Status FaultingDevice::StreamDestroy(Stream stream) {
  const Status status =
      Try(DeviceCall::kStreamDestroy, &Device::StreamDestroy, stream);
  if (status == Status::kSuccess) state_.End(stream);
  return status;
}

Status FaultingDevice::WrapStream(void* handle, Stream* stream) {
  return Try(DeviceCall::kWrapStream, &Device::WrapStream, handle, stream);
}

Status FaultingDevice::StreamSynchronize(Stream stream) {
  return Try(DeviceCall::kStreamSynchronize, &Device::StreamSynchronize,
             stream);
}

Status FaultingDevice::StreamQuery(Stream stream) {
  return Try(DeviceCall::kStreamQuery, &Device::StreamQuery, stream);
}

Status FaultingDevice::StreamWaitEvent(Stream stream, Event event,
                                       unsigned flags) {
  return Try(DeviceCall::kStreamWaitEvent, &Device::StreamWaitEvent, stream,
             event, flags);
}

Status FaultingDevice::LaunchHostFunc(Stream stream, HostFunction function,
                                      void* argument) {
  return Try(DeviceCall::kLaunchHostFunc, &Device::LaunchHostFunc, stream,
             function, argument);
}

Status FaultingDevice::EventCreate(Event* event, unsigned flags) {
  const Status status =
      Try(DeviceCall::kEventCreate, &Device::EventCreate, event, flags);
  if (status == Status::kSuccess) state_.Add(*event);
  return status;
}

Status FaultingDevice::EventDestroy(Event event) {
  const Status status =
      Try(DeviceCall::kEventDestroy, &Device::EventDestroy, event);
  if (status == Status::kSuccess) state_.End(event);
  return status;
}

Status FaultingDevice::EventRecord(Event event, Stream stream, unsigned flags) {
  return Try(DeviceCall::kEventRecord, &Device::EventRecord, event, stream,
             flags);
}

Status FaultingDevice::EventQuery(Event event) {
  return Try(DeviceCall::kEventQuery, &Device::EventQuery, event);
}

Status FaultingDevice::EventSynchronize(Event event) {
  return Try(DeviceCall::kEventSynchronize, &Device::EventSynchronize, event);
}

Status FaultingDevice::MemAlloc(DevicePtr* ptr, std::size_t bytes) {
  return Try(DeviceCall::kMemAlloc, &Device::MemAlloc, ptr, bytes);
}

Status FaultingDevice::MemFree(DevicePtr ptr) {
  return Try(DeviceCall::kMemFree, &Device::MemFree, ptr);
}

Status FaultingDevice::MallocHost(void** ptr, std::size_t bytes,
                                  unsigned flags) {
  return Try(DeviceCall::kMallocHost, &Device::MallocHost, ptr, bytes, flags);
}

Status FaultingDevice::FreeHost(void* ptr) {
  return Try(DeviceCall::kFreeHost, &Device::FreeHost, ptr);
}

Status FaultingDevice::HostRegister(void* ptr, std::size_t bytes,
                                    unsigned flags) {
  return Try(DeviceCall::kHostRegister, &Device::HostRegister, ptr, bytes,
             flags);
}

Status FaultingDevice::HostUnregister(void* ptr) {
  return Try(DeviceCall::kHostUnregister, &Device::HostUnregister, ptr);
}

Status FaultingDevice::MallocManaged(DevicePtr* ptr, std::size_t bytes,
                                     unsigned flags) {
  return Try(DeviceCall::kMallocManaged, &Device::MallocManaged, ptr, bytes,
             flags);
}

Status FaultingDevice::MemcpyAsync(DevicePtr target, DevicePtr source,
                                   std::size_t bytes, Stream stream) {
  return Try(DeviceCall::kMemcpyAsync, &Device::MemcpyAsync, target, source,
             bytes, stream);
}

Status FaultingDevice::MemsetAsync(DevicePtr ptr, int value, std::size_t bytes,
                                   Stream stream) {
  return Try(DeviceCall::kMemsetAsync, &Device::MemsetAsync, ptr, value, bytes,
             stream);
}

Status FaultingDevice::PointerAttributes(DevicePtr ptr, PointerInfo* info) {
  return Try(DeviceCall::kPointerAttributes, &Device::PointerAttributes, ptr,
             info);
}

Status FaultingDevice::EnablePeerAccess(int peer) {
  return Try(DeviceCall::kEnablePeerAccess, &Device::EnablePeerAccess, peer);
}

Status FaultingDevice::CanAccessPeer(int peer, bool* can) {
  return Try(DeviceCall::kCanAccessPeer, &Device::CanAccessPeer, peer, can);
}

Status FaultingDevice::DefaultMemPool(MemPool* pool) {
  const Status status =
      Try(DeviceCall::kDefaultMemPool, &Device::DefaultMemPool, pool);
  if (status == Status::kSuccess) state_.Add(*pool, ordinal());
  return status;
}

Status FaultingDevice::PoolCreate(MemPool* pool,
                                  const MemProperties& properties,
                                  std::size_t max_bytes) {
  const Status status = Try(DeviceCall::kPoolCreate, &Device::PoolCreate, pool,
                            std::cref(properties), max_bytes);
  if (status == Status::kSuccess) state_.Add(*pool, ordinal());
  return status;
}

Status FaultingDevice::PoolDestroy(MemPool pool) {
  const Status status =
      Try(DeviceCall::kPoolDestroy, &Device::PoolDestroy, pool);
  if (status == Status::kSuccess) state_.End(pool);
  return status;
}

Status FaultingDevice::PoolTrimTo(MemPool pool, std::size_t keep_bytes) {
  return Try(DeviceCall::kPoolTrimTo, &Device::PoolTrimTo, pool, keep_bytes);
}

Status FaultingDevice::PoolSetAttribute(MemPool pool, PoolAttribute attribute,
                                        std::uint64_t value) {
  return Try(DeviceCall::kPoolSetAttribute, &Device::PoolSetAttribute, pool,
             attribute, value);
}

Status FaultingDevice::PoolGetAttribute(MemPool pool, PoolAttribute attribute,
                                        std::uint64_t* value) {
  return Try(DeviceCall::kPoolGetAttribute, &Device::PoolGetAttribute, pool,
             attribute, value);
}

Status FaultingDevice::PoolSetAccess(MemPool pool,
                                     const AccessDescriptor* access,
                                     std::size_t count) {
  return Try(DeviceCall::kPoolSetAccess, &Device::PoolSetAccess, pool, access,
             count);
}

Status FaultingDevice::MallocFromPoolAsync(DevicePtr* ptr, std::size_t bytes,
                                           MemPool pool, Stream stream) {
  return Try(DeviceCall::kMallocFromPoolAsync, &Device::MallocFromPoolAsync,
             ptr, bytes, pool, stream);
}

Status FaultingDevice::FreeAsync(DevicePtr ptr, Stream stream) {
  return Try(DeviceCall::kFreeAsync, &Device::FreeAsync, ptr, stream);
}

Status FaultingDevice::PoolExport(MemPool pool, ShareType type,
                                  Shareable* shareable) {
  return Try(DeviceCall::kPoolExport, &Device::PoolExport, pool, type,
             shareable);
}

Status FaultingDevice::PoolImport(MemPool* pool, ShareType type,
                                  const Shareable& shareable) {
  return Try(DeviceCall::kPoolImport, &Device::PoolImport, pool, type,
             std::cref(shareable));
}

Status FaultingDevice::Granularity(const MemProperties& properties,
                                   bool recommended, std::size_t* bytes) {
  return Try(DeviceCall::kGranularity, &Device::Granularity,
             std::cref(properties), recommended, bytes);
}

Status FaultingDevice::ReserveRange(DevicePtr* ptr, std::size_t bytes,
                                    std::size_t alignment, DevicePtr hint) {
  return Try(DeviceCall::kReserveRange, &Device::ReserveRange, ptr, bytes,
             alignment, hint);
}

Status FaultingDevice::FreeRange(DevicePtr ptr, std::size_t bytes) {
  return Try(DeviceCall::kFreeRange, &Device::FreeRange, ptr, bytes);
}

Status FaultingDevice::CreateMemory(MemHandle* handle, std::size_t bytes,
                                    const MemProperties& properties) {
  return Try(DeviceCall::kCreateMemory, &Device::CreateMemory, handle, bytes,
             std::cref(properties));
}

Status FaultingDevice::ReleaseMemory(MemHandle handle) {
  return Try(DeviceCall::kReleaseMemory, &Device::ReleaseMemory, handle);
}

Status FaultingDevice::MapRange(DevicePtr ptr, std::size_t bytes,
                                std::size_t offset, MemHandle handle) {
  const Status status =
      Try(DeviceCall::kMapRange, &Device::MapRange, ptr, bytes, offset, handle);
  if (status == Status::kSuccess) state_.AddMapped(ptr);
  return status;
}

Status FaultingDevice::UnmapRange(DevicePtr ptr, std::size_t bytes) {
  const Status status =
      Try(DeviceCall::kUnmapRange, &Device::UnmapRange, ptr, bytes);
  if (status == Status::kSuccess) state_.EndMapped(ptr, bytes);
  return status;
}

Status FaultingDevice::SetAccess(DevicePtr ptr, std::size_t bytes,
                                 const AccessDescriptor* access,
                                 std::size_t count) {
  return Try(DeviceCall::kSetAccess, &Device::SetAccess, ptr, bytes, access,
             count);
}

Status FaultingDevice::GetAccess(DevicePtr ptr, Location location,
                                 Access* access) {
  return Try(DeviceCall::kGetAccess, &Device::GetAccess, ptr, location, access);
}

Status FaultingDevice::ExportMemory(MemHandle handle, ShareType type,
                                    Shareable* shareable) {
  return Try(DeviceCall::kExportMemory, &Device::ExportMemory, handle, type,
             shareable);
}

Status FaultingDevice::ImportMemory(MemHandle* handle, ShareType type,
                                    const Shareable& shareable) {
  return Try(DeviceCall::kImportMemory, &Device::ImportMemory, handle, type,
             std::cref(shareable));
}

Status FaultingDevice::RetainMemory(DevicePtr ptr, MemHandle* handle) {
  return Try(DeviceCall::kRetainMemory, &Device::RetainMemory, ptr, handle);
}

Status FaultingDevice::StreamBeginCapture(Stream stream, CaptureMode mode) {
  const Status status = Try(DeviceCall::kStreamBeginCapture,
                            &Device::StreamBeginCapture, stream, mode);
  if (status == Status::kSuccess) state_.AddCapture(stream);
  return status;
}

Status FaultingDevice::StreamBeginCaptureToGraph(Stream stream, Graph graph,
                                                 const GraphNode* dependencies,
                                                 std::size_t count,
                                                 CaptureMode mode) {
  const Status status = Try(DeviceCall::kStreamBeginCaptureToGraph,
                            &Device::StreamBeginCaptureToGraph, stream, graph,
                            dependencies, count, mode);
  if (status == Status::kSuccess) state_.AddCapture(stream);
  return status;
}

Status FaultingDevice::StreamEndCapture(Stream stream, Graph* graph) {
  const Status status = Try(DeviceCall::kStreamEndCapture,
                            &Device::StreamEndCapture, stream, graph);
  CaptureStatus left = CaptureStatus::kNone;
  if (device_.StreamIsCapturing(stream, &left) == Status::kSuccess &&
      left == CaptureStatus::kNone) {
    state_.EndCapture(stream);
  }
  return status;
}

Status FaultingDevice::StreamIsCapturing(Stream stream, CaptureStatus* status) {
  return Try(DeviceCall::kStreamIsCapturing, &Device::StreamIsCapturing, stream,
             status);
}

Status FaultingDevice::StreamCaptureInfo(Stream stream, CaptureInfo* info) {
  return Try(DeviceCall::kStreamCaptureInfo, &Device::StreamCaptureInfo, stream,
             info);
}

Status FaultingDevice::StreamUpdateCaptureDependencies(
    Stream stream, const GraphNode* dependencies, std::size_t count,
    bool replace) {
  return Try(DeviceCall::kStreamUpdateCaptureDependencies,
             &Device::StreamUpdateCaptureDependencies, stream, dependencies,
             count, replace);
}

Status FaultingDevice::ThreadExchangeCaptureMode(CaptureMode* mode) {
  return Try(DeviceCall::kThreadExchangeCaptureMode,
             &Device::ThreadExchangeCaptureMode, mode);
}

Status FaultingDevice::GraphCreate(Graph* graph) {
  return Try(DeviceCall::kGraphCreate, &Device::GraphCreate, graph);
}

Status FaultingDevice::GraphDestroy(Graph graph) {
  return Try(DeviceCall::kGraphDestroy, &Device::GraphDestroy, graph);
}

Status FaultingDevice::GraphNodePredecessors(
    GraphNode node, std::vector<GraphNode>* predecessors) {
  return Try(DeviceCall::kGraphNodePredecessors, &Device::GraphNodePredecessors,
             node, predecessors);
}

Status FaultingDevice::GraphInstantiate(GraphExec* exec, Graph graph,
                                        unsigned flags) {
  return Try(DeviceCall::kGraphInstantiate, &Device::GraphInstantiate, exec,
             graph, flags);
}

Status FaultingDevice::GraphExecDestroy(GraphExec exec) {
  return Try(DeviceCall::kGraphExecDestroy, &Device::GraphExecDestroy, exec);
}

Status FaultingDevice::GraphLaunch(GraphExec exec, Stream stream) {
  return Try(DeviceCall::kGraphLaunch, &Device::GraphLaunch, exec, stream);
}

Status FaultingDevice::GraphExecUpdate(GraphExec exec, Graph graph) {
  return Try(DeviceCall::kGraphExecUpdate, &Device::GraphExecUpdate, exec,
             graph);
}

Status FaultingDevice::GraphMemTrim() {
  return Try(DeviceCall::kGraphMemTrim, &Device::GraphMemTrim);
}

Status FaultingDevice::GraphMemAttribute(GraphMemAttributeKind kind,
                                         std::uint64_t* value) {
  return Try(DeviceCall::kGraphMemAttribute, &Device::GraphMemAttribute, kind,
             value);
}

Status FaultingDevice::UserObjectCreate(UserObject* object, void* pointer,
                                        HostFunction destroy) {
  return Try(DeviceCall::kUserObjectCreate, &Device::UserObjectCreate, object,
             pointer, destroy);
}

Status FaultingDevice::GraphRetainUserObject(Graph graph, UserObject object,
                                             bool move) {
  return Try(DeviceCall::kGraphRetainUserObject, &Device::GraphRetainUserObject,
             graph, object, move);
}

Status FaultingDevice::UserObjectRelease(UserObject object) {
  return Try(DeviceCall::kUserObjectRelease, &Device::UserObjectRelease,
             object);
}

}  // namespace strata
