#include "strata/platform/device.h"

#include <utility>

#include "strata/base/clock.h"

namespace strata {

std::uint64_t Device::CallCount(DeviceCall call) const {
  if (!IsEntryPoint(call)) return 0;
  return call_counts_[static_cast<std::size_t>(call)].load(
      std::memory_order_relaxed);
}

void Device::CountCall(DeviceCall call) {
  call_counts_[static_cast<std::size_t>(call)].fetch_add(
      1, std::memory_order_relaxed);
}

template <class Change>
void Device::ChangeObservers(Change change) {
  std::shared_ptr<const Observers> former;  // destroyed after the unlock
  std::lock_guard lock(observer_mutex_);
  former = observers_;
  Observers observers =
      former != nullptr ? *former : Observers(1, CallObserver());
  change(&observers);
  const bool any = observers.size() > 1 || observers.front() != nullptr;
  observers_ =
      any ? std::make_shared<const Observers>(std::move(observers)) : nullptr;
  observed_.store(any, std::memory_order_release);
}

void Device::SetCallObserver(CallObserver observer) {
  ChangeObservers(
      [&](Observers* observers) { observers->front() = std::move(observer); });
}

void Device::AddCallObserver(CallObserver observer) {
  ChangeObservers(
      [&](Observers* observers) { observers->push_back(std::move(observer)); });
  observed_for_life_.store(true, std::memory_order_release);
}

void Device::TellObserver(CallRecord record) {
  std::shared_ptr<const Observers> observers;
  {
    std::lock_guard lock(observer_mutex_);
    observers = observers_;
  }
  if (observers == nullptr) return;
  record.device = ordinal();
  record.thread = CallingThreadNumber();
  record.time_ns = NowNs();
  for (const CallObserver& observer : *observers) {
    if (observer) observer(record);
  }
}

void Device::NoteDependencies(const GraphNode* nodes, std::size_t count) {
  if (!observed() || nodes == nullptr) return;
  for (std::size_t i = 0; i < count; ++i) {
    Note(RecordOf(DeviceCall::kDependency,
                  reinterpret_cast<std::uintptr_t>(nodes[i].value)));
  }
}

std::uint64_t Device::NowNs() const {
  return static_cast<std::uint64_t>(Clock::Steady().Now().count());
}

// The entry points that a device may lack.

Status Device::LaunchHostFunc(Stream, HostFunction, void*) {
  return Status::kNotSupported;
}

Status Device::MallocHost(void**, std::size_t, unsigned) {
  return Status::kNotSupported;
}

Status Device::FreeHost(void*) { return Status::kNotSupported; }

Status Device::HostRegister(void*, std::size_t, unsigned) {
  return Status::kNotSupported;
}

Status Device::HostUnregister(void*) { return Status::kNotSupported; }

Status Device::MallocManaged(DevicePtr*, std::size_t, unsigned) {
  return Status::kNotSupported;
}

Status Device::PointerAttributes(DevicePtr, PointerInfo*) {
  return Status::kNotSupported;
}

Status Device::EnablePeerAccess(int) { return Status::kNotSupported; }

Status Device::CanAccessPeer(int, bool*) { return Status::kNotSupported; }

Status Device::DefaultMemPool(MemPool*) { return Status::kNotSupported; }

Status Device::PoolCreate(MemPool*, const MemProperties&, std::size_t) {
  return Status::kNotSupported;
}

Status Device::PoolDestroy(MemPool) { return Status::kNotSupported; }

Status Device::PoolTrimTo(MemPool, std::size_t) {
  return Status::kNotSupported;
}

Status Device::PoolSetAttribute(MemPool, PoolAttribute, std::uint64_t) {
  return Status::kNotSupported;
}

Status Device::PoolGetAttribute(MemPool, PoolAttribute, std::uint64_t*) {
  return Status::kNotSupported;
}

Status Device::PoolSetAccess(MemPool, const AccessDescriptor*, std::size_t) {
  return Status::kNotSupported;
}

Status Device::MallocFromPoolAsync(DevicePtr*, std::size_t, MemPool, Stream) {
  return Status::kNotSupported;
}

Status Device::FreeAsync(DevicePtr, Stream) { return Status::kNotSupported; }

Status Device::PoolExport(MemPool, ShareType, Shareable*) {
  return Status::kNotSupported;
}

Status Device::PoolImport(MemPool*, ShareType, const Shareable&) {
  return Status::kNotSupported;
}

Status Device::Granularity(const MemProperties&, bool, std::size_t*) {
  return Status::kNotSupported;
}

Status Device::ReserveRange(DevicePtr*, std::size_t, std::size_t, DevicePtr) {
  return Status::kNotSupported;
}

Status Device::FreeRange(DevicePtr, std::size_t) {
  return Status::kNotSupported;
}

Status Device::CreateMemory(MemHandle*, std::size_t, const MemProperties&) {
  return Status::kNotSupported;
}

Status Device::ReleaseMemory(MemHandle) { return Status::kNotSupported; }

Status Device::MapRange(DevicePtr, std::size_t, std::size_t, MemHandle) {
  return Status::kNotSupported;
}

Status Device::UnmapRange(DevicePtr, std::size_t) {
  return Status::kNotSupported;
}

Status Device::SetAccess(DevicePtr, std::size_t, const AccessDescriptor*,
                         std::size_t) {
  return Status::kNotSupported;
}

Status Device::GetAccess(DevicePtr, Location, Access*) {
  return Status::kNotSupported;
}

Status Device::ExportMemory(MemHandle, ShareType, Shareable*) {
  return Status::kNotSupported;
}

Status Device::ImportMemory(MemHandle*, ShareType, const Shareable&) {
  return Status::kNotSupported;
}

Status Device::RetainMemory(DevicePtr, MemHandle*) {
  return Status::kNotSupported;
}

Status Device::StreamBeginCapture(Stream, CaptureMode) {
  return Status::kNotSupported;
}

Status Device::StreamBeginCaptureToGraph(Stream, Graph, const GraphNode*,
                                         std::size_t, CaptureMode) {
  return Status::kNotSupported;
}

Status Device::StreamEndCapture(Stream, Graph*) {
  return Status::kNotSupported;
}

Status Device::StreamIsCapturing(Stream, CaptureStatus*) {
  return Status::kNotSupported;
}

Status Device::StreamCaptureInfo(Stream, CaptureInfo*) {
  return Status::kNotSupported;
}

Status Device::StreamUpdateCaptureDependencies(Stream, const GraphNode*,
                                               std::size_t, bool) {
  return Status::kNotSupported;
}

Status Device::ThreadExchangeCaptureMode(CaptureMode*) {
  return Status::kNotSupported;
}

Status Device::GraphCreate(Graph*) { return Status::kNotSupported; }

Status Device::GraphDestroy(Graph) { return Status::kNotSupported; }

Status Device::GraphNodePredecessors(GraphNode, std::vector<GraphNode>*) {
  return Status::kNotSupported;
}

Status Device::GraphInstantiate(GraphExec*, Graph, unsigned) {
  return Status::kNotSupported;
}

Status Device::GraphExecDestroy(GraphExec) { return Status::kNotSupported; }

Status Device::GraphLaunch(GraphExec, Stream) { return Status::kNotSupported; }

Status Device::GraphExecUpdate(GraphExec, Graph) {
  return Status::kNotSupported;
}

Status Device::GraphMemTrim() { return Status::kNotSupported; }

Status Device::GraphMemAttribute(GraphMemAttributeKind, std::uint64_t*) {
  return Status::kNotSupported;
}

Status Device::UserObjectCreate(UserObject*, void*, HostFunction) {
  return Status::kNotSupported;
}

Status Device::GraphRetainUserObject(Graph, UserObject, bool) {
  return Status::kNotSupported;
}

Status Device::UserObjectRelease(UserObject) { return Status::kNotSupported; }

}  // namespace strata
