#ifndef STRATA_TESTS_PLATFORM_SIM_DEVICE_SIM_CALLS_H_
#define STRATA_TESTS_PLATFORM_SIM_DEVICE_SIM_CALLS_H_

#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "strata/platform/device.h"
#include "strata/platform/memory_types.h"
#include "strata/platform/stream.h"

namespace strata::sim {

// Objects for the calls below, and their results.
struct SimCallWorld {
  explicit SimCallWorld(Device* on) : device(on), memory(4096), spare(4096) {}

  Device* device;
  Stream stream;
  Event event;
  DevicePtr ptr = 0;
  DevicePtr managed = 0;
  void* pinned = nullptr;
  DevicePtr range = 0;  // reserved, four frames; the first one is mapped
  MemHandle handle;     // of two frames
  MemHandle mapped_handle;
  Shareable exported;
  MemPool pool;
  DevicePtr pool_ptr = 0;
  Shareable shared;  // of the pool
  Stream capture_stream;
  Graph graph;  // of one node
  GraphNode node;
  std::vector<char> memory;  // registered
  std::vector<char> spare;   // not registered
  int host_function_runs = 0;
  // Results, initialised to values that no call returns.
  std::size_t free_bytes = 77;
  std::size_t total_bytes = 77;
  Stream new_stream;
  Event new_event;
  DevicePtr new_ptr = 77;
  void* new_pinned = nullptr;
  PointerInfo info{MemoryType::kManaged, 77};
  bool can = false;
  std::size_t granularity = 77;
  DevicePtr new_range = 77;
  MemHandle new_handle;
  MemHandle retained;
  MemHandle imported;
  Shareable new_exported;
  Access access = Access::kRead;
  MemPool new_pool;
  std::uint64_t new_value = 77;
  Shareable new_shared;
  CaptureMode mode = CaptureMode::kThreadLocal;
  CaptureStatus capture_status = CaptureStatus::kInvalidated;
  CaptureInfo capture_info{CaptureStatus::kInvalidated, 77, {}, {}};
  Graph new_graph;
  Graph captured_graph;
  GraphExec exec;
  UserObject new_object;
  std::uint64_t graph_bytes = 77;
  std::vector<GraphNode> predecessors{GraphNode{}};
};

inline constexpr std::size_t kWorldFrameBytes = std::size_t{2} << 20;

inline MemProperties ShareableOf(const Device& device) {
  MemProperties properties;
  properties.location.id = device.ordinal();
  properties.share = ShareType::kPosixFd;
  return properties;
}

// Creates the virtual memory for the calls.
inline bool PrepareVirtualMemory(SimCallWorld* w) {
  Device& d = *w->device;
  return d.ReserveRange(&w->range, 4 * kWorldFrameBytes, 0, 0) ==
             Status::kSuccess &&
         d.CreateMemory(&w->handle, 2 * kWorldFrameBytes, ShareableOf(d)) ==
             Status::kSuccess &&
         d.CreateMemory(&w->mapped_handle, kWorldFrameBytes, ShareableOf(d)) ==
             Status::kSuccess &&
         d.MapRange(w->range, kWorldFrameBytes, 0, w->mapped_handle) ==
             Status::kSuccess &&
         d.ExportMemory(w->handle, ShareType::kPosixFd, &w->exported) ==
             Status::kSuccess;
}

struct SimCallCase {
  DeviceCall call;
  std::function<Status(SimCallWorld*)> run;
};

inline MemProperties SharedPool() {
  MemProperties properties;
  properties.share = ShareType::kPosixFd;
  return properties;
}

// The calls of pools on the device.
inline std::vector<SimCallCase> SimPoolCallCases() {
  using W = SimCallWorld;
  using C = DeviceCall;
  constexpr auto kThreshold = PoolAttribute::kReleaseThreshold;
  return {
      {C::kDefaultMemPool,
       [](W* w) { return w->device->DefaultMemPool(&w->new_pool); }},
      {C::kPoolCreate,
       [](W* w) { return w->device->PoolCreate(&w->new_pool, {}, 0); }},
      {C::kPoolTrimTo, [](W* w) { return w->device->PoolTrimTo(w->pool, 0); }},
      {C::kPoolSetAttribute,
       [](W* w) {
         return w->device->PoolSetAttribute(w->pool, kThreshold, 1 << 20);
       }},
      {C::kPoolGetAttribute,
       [](W* w) {
         return w->device->PoolGetAttribute(w->pool, kThreshold, &w->new_value);
       }},
      {C::kPoolSetAccess,
       [](W* w) {
         AccessDescriptor access;
         access.location.id = 1;
         return w->device->PoolSetAccess(w->pool, &access, 1);
       }},
      {C::kMallocFromPoolAsync,
       [](W* w) {
         return w->device->MallocFromPoolAsync(&w->new_ptr, 4096, w->pool,
                                               w->stream);
       }},
      {C::kPoolExport,
       [](W* w) {
         return w->device->PoolExport(w->pool, ShareType::kPosixFd,
                                      &w->new_shared);
       }},
      {C::kPoolImport,
       [](W* w) {
         return w->device->PoolImport(&w->new_pool, ShareType::kPosixFd,
                                      w->shared);
       }},
      {C::kFreeAsync,
       [](W* w) { return w->device->FreeAsync(w->pool_ptr, w->stream); }},
      {C::kPoolDestroy, [](W* w) { return w->device->PoolDestroy(w->pool); }},
  };
}

// Captures a graph of one node.
inline bool PrepareGraph(SimCallWorld* w) {
  Device& d = *w->device;
  CaptureInfo info;
  if (d.StreamCreate(&w->capture_stream, kStreamNonBlocking) !=
          Status::kSuccess ||
      d.StreamBeginCapture(w->capture_stream, CaptureMode::kRelaxed) !=
          Status::kSuccess ||
      d.MemsetAsync(w->managed, 7, 4096, w->capture_stream) !=
          Status::kSuccess ||
      d.StreamCaptureInfo(w->capture_stream, &info) != Status::kSuccess) {
    return false;
  }
  w->node = info.dependencies.at(0);
  return d.StreamEndCapture(w->capture_stream, &w->graph) == Status::kSuccess;
}

// The calls of captures and graphs.
inline std::vector<SimCallCase> SimGraphCallCases() {
  using W = SimCallWorld;
  using C = DeviceCall;
  const auto end = [](W* w) {
    return w->device->StreamEndCapture(w->capture_stream, &w->captured_graph);
  };
  return {
      {C::kThreadExchangeCaptureMode,
       [](W* w) { return w->device->ThreadExchangeCaptureMode(&w->mode); }},
      {C::kStreamBeginCapture,
       [](W* w) {
         return w->device->StreamBeginCapture(w->capture_stream,
                                              CaptureMode::kRelaxed);
       }},
      {C::kStreamIsCapturing,
       [](W* w) {
         return w->device->StreamIsCapturing(w->capture_stream,
                                             &w->capture_status);
       }},
      {C::kStreamCaptureInfo,
       [](W* w) {
         return w->device->StreamCaptureInfo(w->capture_stream,
                                             &w->capture_info);
       }},
      {C::kStreamUpdateCaptureDependencies,
       [](W* w) {
         return w->device->StreamUpdateCaptureDependencies(w->capture_stream,
                                                           nullptr, 0, true);
       }},
      {C::kStreamEndCapture, end},
      {C::kGraphCreate,
       [](W* w) { return w->device->GraphCreate(&w->new_graph); }},
      {C::kStreamBeginCaptureToGraph,
       [](W* w) {
         return w->device->StreamBeginCaptureToGraph(w->capture_stream,
                                                     w->new_graph, nullptr, 0,
                                                     CaptureMode::kRelaxed);
       }},
      {C::kStreamEndCapture, end},
      {C::kGraphNodePredecessors,
       [](W* w) {
         return w->device->GraphNodePredecessors(w->node, &w->predecessors);
       }},
      {C::kUserObjectCreate,
       [](W* w) {
         return w->device->UserObjectCreate(&w->new_object, nullptr,
                                            [](void*) {});
       }},
      {C::kGraphRetainUserObject,
       [](W* w) {
         return w->device->GraphRetainUserObject(w->graph, w->new_object,
                                                 false);
       }},
      {C::kUserObjectRelease,
       [](W* w) { return w->device->UserObjectRelease(w->new_object); }},
      {C::kGraphInstantiate,
       [](W* w) { return w->device->GraphInstantiate(&w->exec, w->graph, 0); }},
      {C::kGraphLaunch,
       [](W* w) { return w->device->GraphLaunch(w->exec, w->stream); }},
      {C::kGraphMemTrim, [](W* w) { return w->device->GraphMemTrim(); }},
      {C::kGraphMemAttribute,
       [](W* w) {
         return w->device->GraphMemAttribute(
             GraphMemAttributeKind::kReservedCurrent, &w->graph_bytes);
       }},
      {C::kGraphExecUpdate,
       [](W* w) { return w->device->GraphExecUpdate(w->exec, w->graph); }},
      {C::kGraphExecDestroy,
       [](W* w) { return w->device->GraphExecDestroy(w->exec); }},
      {C::kGraphDestroy,
       [](W* w) { return w->device->GraphDestroy(w->graph); }},
  };
}

// Creates the objects for the calls.
inline bool PrepareWorld(SimCallWorld* w) {
  Device& d = *w->device;
  return d.StreamCreate(&w->stream, 0) == Status::kSuccess &&
         d.EventCreate(&w->event, 0) == Status::kSuccess &&
         d.MemAlloc(&w->ptr, 4096) == Status::kSuccess &&
         d.MallocManaged(&w->managed, 4096, kManagedGlobal) ==
             Status::kSuccess &&
         d.MallocHost(&w->pinned, 4096, 0) == Status::kSuccess &&
         d.PoolCreate(&w->pool, SharedPool(), 0) == Status::kSuccess &&
         d.MallocFromPoolAsync(&w->pool_ptr, 4096, w->pool, w->stream) ==
             Status::kSuccess &&
         d.PoolExport(w->pool, ShareType::kPosixFd, &w->shared) ==
             Status::kSuccess &&
         d.HostRegister(w->memory.data(), w->memory.size(), 0) ==
             Status::kSuccess &&
         PrepareVirtualMemory(w) && PrepareGraph(w);
}

// Closes the descriptors of the world and of the calls.
inline void CloseWorld(SimCallWorld* w) {
  for (const Shareable& shareable :
       {w->exported, w->new_exported, w->shared, w->new_shared}) {
    if (shareable.fd >= 0) close(shareable.fd);
  }
}

// The calls on virtual memory.
inline std::vector<SimCallCase> VirtualMemoryCallCases() {
  using W = SimCallWorld;
  using C = DeviceCall;
  constexpr std::size_t kFrame = kWorldFrameBytes;
  return {
      {C::kGranularity,
       [](W* w) {
         return w->device->Granularity(ShareableOf(*w->device), true,
                                       &w->granularity);
       }},
      {C::kReserveRange,
       [](W* w) {
         return w->device->ReserveRange(&w->new_range, kFrame, 0, 0);
       }},
      {C::kCreateMemory,
       [](W* w) {
         return w->device->CreateMemory(&w->new_handle, kFrame,
                                        ShareableOf(*w->device));
       }},
      {C::kMapRange,
       [](W* w) {
         return w->device->MapRange(w->range + kFrame, 2 * kFrame, 0,
                                    w->handle);
       }},
      {C::kSetAccess,
       [](W* w) {
         AccessDescriptor access;
         access.location.id = w->device->ordinal();
         return w->device->SetAccess(w->range, 3 * kFrame, &access, 1);
       }},
      {C::kGetAccess,
       [](W* w) {
         Location location;
         location.id = w->device->ordinal();
         return w->device->GetAccess(w->range, location, &w->access);
       }},
      {C::kRetainMemory,
       [](W* w) { return w->device->RetainMemory(w->range, &w->retained); }},
      {C::kExportMemory,
       [](W* w) {
         return w->device->ExportMemory(w->handle, ShareType::kPosixFd,
                                        &w->new_exported);
       }},
      {C::kImportMemory,
       [](W* w) {
         return w->device->ImportMemory(&w->imported, ShareType::kPosixFd,
                                        w->exported);
       }},
      {C::kUnmapRange,
       [](W* w) { return w->device->UnmapRange(w->range, 3 * kFrame); }},
      {C::kReleaseMemory,
       [](W* w) { return w->device->ReleaseMemory(w->handle); }},
      {C::kFreeRange,
       [](W* w) { return w->device->FreeRange(w->range, 4 * kFrame); }},
  };
}

// One call of every entry point of the simulated device. Each call succeeds in
// a prepared world, in this order.
inline std::vector<SimCallCase> SimCallCases() {
  using W = SimCallWorld;
  using C = DeviceCall;
  std::vector<SimCallCase> cases = SimPoolCallCases();
  std::vector<SimCallCase> virtual_memory = VirtualMemoryCallCases();
  cases.insert(cases.end(), virtual_memory.begin(), virtual_memory.end());
  std::vector<SimCallCase> graphs = SimGraphCallCases();
  cases.insert(cases.end(), graphs.begin(), graphs.end());
  std::vector<SimCallCase> others = {
      {C::kMemGetInfo,
       [](W* w) {
         return w->device->MemGetInfo(&w->free_bytes, &w->total_bytes);
       }},
      {C::kSynchronize, [](W* w) { return w->device->Synchronize(); }},
      {C::kStreamCreate,
       [](W* w) { return w->device->StreamCreate(&w->new_stream, 0); }},
      {C::kWrapStream,
       [](W* w) {
         return w->device->WrapStream(w->stream.handle, &w->new_stream);
       }},
      {C::kStreamSynchronize,
       [](W* w) { return w->device->StreamSynchronize(w->stream); }},
      {C::kStreamQuery, [](W* w) { return w->device->StreamQuery(w->stream); }},
      {C::kStreamWaitEvent,
       [](W* w) { return w->device->StreamWaitEvent(w->stream, w->event, 0); }},
      {C::kLaunchHostFunc,
       [](W* w) {
         return w->device->LaunchHostFunc(
             w->stream, [](void* runs) { ++*static_cast<int*>(runs); },
             &w->host_function_runs);
       }},
      {C::kEventCreate,
       [](W* w) { return w->device->EventCreate(&w->new_event, 0); }},
      {C::kEventRecord,
       [](W* w) { return w->device->EventRecord(w->event, w->stream, 0); }},
      {C::kEventQuery, [](W* w) { return w->device->EventQuery(w->event); }},
      {C::kEventSynchronize,
       [](W* w) { return w->device->EventSynchronize(w->event); }},
      {C::kMemAlloc,
       [](W* w) { return w->device->MemAlloc(&w->new_ptr, 4096); }},
      {C::kMallocHost,
       [](W* w) { return w->device->MallocHost(&w->new_pinned, 4096, 0); }},
      {C::kMallocManaged,
       [](W* w) {
         return w->device->MallocManaged(&w->new_ptr, 4096, kManagedGlobal);
       }},
      {C::kHostRegister,
       [](W* w) {
         return w->device->HostRegister(w->spare.data(), w->spare.size(), 0);
       }},
      {C::kMemcpyAsync,
       [](W* w) {
         return w->device->MemcpyAsync(w->ptr, w->managed, 4096, w->stream);
       }},
      {C::kMemsetAsync,
       [](W* w) {
         return w->device->MemsetAsync(w->managed, 1, 4096, w->stream);
       }},
      {C::kPointerAttributes,
       [](W* w) { return w->device->PointerAttributes(w->ptr, &w->info); }},
      {C::kEnablePeerAccess,
       [](W* w) { return w->device->EnablePeerAccess(1); }},
      {C::kCanAccessPeer,
       [](W* w) { return w->device->CanAccessPeer(1, &w->can); }},
      {C::kMemFree, [](W* w) { return w->device->MemFree(w->ptr); }},
      {C::kFreeHost, [](W* w) { return w->device->FreeHost(w->pinned); }},
      {C::kHostUnregister,
       [](W* w) { return w->device->HostUnregister(w->memory.data()); }},
      {C::kEventDestroy,
       [](W* w) { return w->device->EventDestroy(w->event); }},
      {C::kStreamDestroy,
       [](W* w) { return w->device->StreamDestroy(w->stream); }},
  };
  cases.insert(cases.end(), others.begin(), others.end());
  return cases;
}

}  // namespace strata::sim

#endif  // STRATA_TESTS_PLATFORM_SIM_DEVICE_SIM_CALLS_H_
