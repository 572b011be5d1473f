#include "strata/tests/testing/devices/unsafe_calls.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace strata {
namespace {

using S = CallSubject;

void Expect(Status status) { EXPECT_EQ(status, Status::kSuccess); }

bool Always(const Caps&) { return true; }
bool HasPinned(const Caps& caps) { return caps.pinned_memory; }
bool HasManaged(const Caps& caps) { return caps.managed_memory; }
bool HasPools(const Caps& caps) { return caps.mem_pools; }
bool HasVirtual(const Caps& caps) { return caps.virtual_memory; }
bool HasGraphs(const Caps& caps) { return caps.graphs; }

AccessDescriptor OfItsDevice(const S& s) {
  return {{Location::Kind::kDevice, s.device.ordinal()}, Access::kReadWrite};
}

}  // namespace

void CallSubject::NewStream() {
  Expect(device.StreamCreate(&stream, kStreamNonBlocking));
}

void CallSubject::EndStream() { Expect(device.StreamDestroy(stream)); }

void CallSubject::NewEvent() {
  Expect(device.EventCreate(&event, kEventDisableTiming));
}

void CallSubject::EndEvent() { Expect(device.EventDestroy(event)); }

void CallSubject::NewMemory() { Expect(device.MemAlloc(&ptr, kBytes)); }

void CallSubject::EndMemory() { Expect(device.MemFree(ptr)); }

void CallSubject::NewHost() { Expect(device.MallocHost(&host, kBytes, 0)); }

void CallSubject::EndHost() { Expect(device.FreeHost(host)); }

void CallSubject::Register() {
  NewPageable();
  Expect(device.HostRegister(pageable.data(), kBytes, 0));
}

void CallSubject::Unregister() {
  Expect(device.HostUnregister(pageable.data()));
}

void CallSubject::NewPool() { Expect(device.PoolCreate(&pool, {}, 0)); }

void CallSubject::EndPool() { Expect(device.PoolDestroy(pool)); }

void CallSubject::NewStreamAndPool() {
  NewStream();
  NewPool();
}

void CallSubject::EndStreamAndPool() {
  EndPool();
  EndStream();
}

void CallSubject::NewBlock() {
  NewStreamAndPool();
  Expect(device.MallocFromPoolAsync(&ptr, kBytes, pool, stream));
}

// The pool keeps the block's memory until its work is done.
void CallSubject::EndBlock() {
  Expect(device.FreeAsync(ptr, stream));
  Expect(device.StreamSynchronize(stream));
  EndStreamAndPool();
}

void CallSubject::NewRange() {
  Expect(device.ReserveRange(&ptr, kBytes, 0, 0));
}

void CallSubject::EndRange() { Expect(device.FreeRange(ptr, kBytes)); }

void CallSubject::NewHandle() {
  Expect(device.CreateMemory(&handle, kBytes, {}));
}

void CallSubject::EndHandle() { Expect(device.ReleaseMemory(handle)); }

void CallSubject::NewRangeAndHandle() {
  NewRange();
  NewHandle();
}

void CallSubject::EndRangeAndHandle() {
  EndHandle();
  EndRange();
}

void CallSubject::NewMapping() {
  NewRangeAndHandle();
  Expect(device.MapRange(ptr, kBytes, 0, handle));
}

void CallSubject::EndMapping() {
  Expect(device.UnmapRange(ptr, kBytes));
  EndRangeAndHandle();
}

void CallSubject::NewGraph() { Expect(device.GraphCreate(&graph)); }

void CallSubject::EndGraph() { Expect(device.GraphDestroy(graph)); }

void CallSubject::NewExec() {
  NewGraph();
  Expect(device.GraphInstantiate(&exec, graph, 0));
}

void CallSubject::EndExec() {
  Expect(device.GraphExecDestroy(exec));
  EndGraph();
}

void CallSubject::NewStreamAndExec() {
  NewStream();
  NewExec();
}

void CallSubject::EndStreamAndExec() {
  EndExec();
  EndStream();
}

std::vector<UnsafeCall> CallsKnownToBeUnsafe() {
  return {
      {"mem_alloc", Always, &S::Nothing,
       [](S& s) { return s.device.MemAlloc(&s.ptr, S::kBytes); }, &S::EndMemory,
       &S::Nothing},
      {"mem_free", Always, &S::NewMemory,
       [](S& s) { return s.device.MemFree(s.ptr); }, &S::Nothing,
       &S::EndMemory},
      {"malloc_host", HasPinned, &S::Nothing,
       [](S& s) { return s.device.MallocHost(&s.host, S::kBytes, 0); },
       &S::EndHost, &S::Nothing},
      {"free_host", HasPinned, &S::NewHost,
       [](S& s) { return s.device.FreeHost(s.host); }, &S::Nothing,
       &S::EndHost},
      {"host_register", HasPinned, &S::NewPageable,
       [](S& s) {
         return s.device.HostRegister(s.pageable.data(), S::kBytes, 0);
       },
       &S::Unregister, &S::Nothing},
      {"host_unregister", HasPinned, &S::Register,
       [](S& s) { return s.device.HostUnregister(s.pageable.data()); },
       &S::Nothing, &S::Unregister},
      {"malloc_managed", HasManaged, &S::Nothing,
       [](S& s) {
         return s.device.MallocManaged(&s.ptr, S::kBytes, kManagedGlobal);
       },
       &S::EndMemory, &S::Nothing},
      {"stream_synchronize", Always, &S::NewStream,
       [](S& s) { return s.device.StreamSynchronize(s.stream); }, &S::EndStream,
       &S::EndStream},
      {"event_synchronize", Always, &S::NewEvent,
       [](S& s) { return s.device.EventSynchronize(s.event); }, &S::EndEvent,
       &S::EndEvent},
      {"pool_create", HasPools, &S::Nothing,
       [](S& s) { return s.device.PoolCreate(&s.pool, {}, 0); }, &S::EndPool,
       &S::Nothing},
      {"pool_destroy", HasPools, &S::NewPool,
       [](S& s) { return s.device.PoolDestroy(s.pool); }, &S::Nothing,
       &S::EndPool},
      {"pool_trim_to", HasPools, &S::NewPool,
       [](S& s) { return s.device.PoolTrimTo(s.pool, 0); }, &S::EndPool,
       &S::EndPool},
      {"pool_get_attribute", HasPools, &S::NewPool,
       [](S& s) {
         std::uint64_t value = 0;
         return s.device.PoolGetAttribute(s.pool, PoolAttribute::kUsedCurrent,
                                          &value);
       },
       &S::EndPool, &S::EndPool},
      {"pool_set_attribute", HasPools, &S::NewPool,
       [](S& s) {
         return s.device.PoolSetAttribute(
             s.pool, PoolAttribute::kReleaseThreshold, S::kBytes);
       },
       &S::EndPool, &S::EndPool},
      {"pool_set_access", HasPools, &S::NewPool,
       [](S& s) {
         const AccessDescriptor access = OfItsDevice(s);
         return s.device.PoolSetAccess(s.pool, &access, 1);
       },
       &S::EndPool, &S::EndPool},
      {"graph_exec_destroy", HasGraphs, &S::NewExec,
       [](S& s) { return s.device.GraphExecDestroy(s.exec); }, &S::EndGraph,
       &S::EndExec},
      {"stream_query", Always, &S::NewStream,
       [](S& s) { return s.device.StreamQuery(s.stream); }, &S::EndStream,
       &S::EndStream},
      {"event_query", Always, &S::NewEvent,
       [](S& s) { return s.device.EventQuery(s.event); }, &S::EndEvent,
       &S::EndEvent},
      {"malloc_from_pool_async", HasPools, &S::NewStreamAndPool,
       [](S& s) {
         return s.device.MallocFromPoolAsync(&s.ptr, S::kBytes, s.pool,
                                             s.stream);
       },
       &S::EndBlock, &S::EndStreamAndPool},
      {"free_async", HasPools, &S::NewBlock,
       [](S& s) { return s.device.FreeAsync(s.ptr, s.stream); },
       &S::EndStreamAndPool, &S::EndBlock},
      {"graph_instantiate", HasGraphs, &S::NewGraph,
       [](S& s) { return s.device.GraphInstantiate(&s.exec, s.graph, 0); },
       &S::EndExec, &S::EndGraph},
  };
}

std::vector<UnsafeCall> CallsKnownToBeSafe() {
  return {
      {"stream_create", Always, &S::Nothing,
       [](S& s) {
         return s.device.StreamCreate(&s.stream, kStreamNonBlocking);
       },
       &S::EndStream, &S::Nothing},
      {"stream_destroy", Always, &S::NewStream,
       [](S& s) { return s.device.StreamDestroy(s.stream); }, &S::Nothing,
       &S::EndStream},
      {"event_create", Always, &S::Nothing,
       [](S& s) { return s.device.EventCreate(&s.event, kEventDisableTiming); },
       &S::EndEvent, &S::Nothing},
      {"event_destroy", Always, &S::NewEvent,
       [](S& s) { return s.device.EventDestroy(s.event); }, &S::Nothing,
       &S::EndEvent},
      {"mem_get_info", Always, &S::Nothing,
       [](S& s) {
         std::size_t free_bytes = 0;
         std::size_t total_bytes = 0;
         return s.device.MemGetInfo(&free_bytes, &total_bytes);
       },
       &S::Nothing, &S::Nothing},
      {"pointer_attributes", Always, &S::NewMemory,
       [](S& s) {
         PointerInfo info;
         return s.device.PointerAttributes(s.ptr, &info);
       },
       &S::EndMemory, &S::EndMemory},
      {"reserve_range", HasVirtual, &S::Nothing,
       [](S& s) { return s.device.ReserveRange(&s.ptr, S::kBytes, 0, 0); },
       &S::EndRange, &S::Nothing},
      {"free_range", HasVirtual, &S::NewRange,
       [](S& s) { return s.device.FreeRange(s.ptr, S::kBytes); }, &S::Nothing,
       &S::EndRange},
      {"create_memory", HasVirtual, &S::Nothing,
       [](S& s) { return s.device.CreateMemory(&s.handle, S::kBytes, {}); },
       &S::EndHandle, &S::Nothing},
      {"release_memory", HasVirtual, &S::NewHandle,
       [](S& s) { return s.device.ReleaseMemory(s.handle); }, &S::Nothing,
       &S::EndHandle},
      {"map_range", HasVirtual, &S::NewRangeAndHandle,
       [](S& s) { return s.device.MapRange(s.ptr, S::kBytes, 0, s.handle); },
       &S::EndMapping, &S::EndRangeAndHandle},
      {"unmap_range", HasVirtual, &S::NewMapping,
       [](S& s) { return s.device.UnmapRange(s.ptr, S::kBytes); },
       &S::EndRangeAndHandle, &S::EndMapping},
      {"set_access", HasVirtual, &S::NewMapping,
       [](S& s) {
         const AccessDescriptor access = OfItsDevice(s);
         return s.device.SetAccess(s.ptr, S::kBytes, &access, 1);
       },
       &S::EndMapping, &S::EndMapping},
      {"graph_launch", HasGraphs, &S::NewStreamAndExec,
       [](S& s) { return s.device.GraphLaunch(s.exec, s.stream); },
       &S::EndStreamAndExec, &S::EndStreamAndExec},
      {"wrap_stream", Always, &S::NewStream,
       [](S& s) {
         Stream wrapped;
         return s.device.WrapStream(s.stream.handle, &wrapped);
       },
       &S::EndStream, &S::EndStream},
      {"graph_destroy", HasGraphs, &S::NewGraph,
       [](S& s) { return s.device.GraphDestroy(s.graph); }, &S::Nothing,
       &S::EndGraph},
      {"can_access_peer", Always, &S::Nothing,
       [](S& s) {
         bool can = false;
         return s.device.CanAccessPeer(s.device.ordinal(), &can);
       },
       &S::Nothing, &S::Nothing},
      {"default_mem_pool", HasPools, &S::Nothing,
       [](S& s) {
         MemPool pool;
         return s.device.DefaultMemPool(&pool);
       },
       &S::Nothing, &S::Nothing},
      {"granularity", HasVirtual, &S::Nothing,
       [](S& s) {
         std::size_t bytes = 0;
         return s.device.Granularity({}, false, &bytes);
       },
       &S::Nothing, &S::Nothing},
      {"get_access", HasVirtual, &S::NewMapping,
       [](S& s) {
         Access access = Access::kNone;
         return s.device.GetAccess(s.ptr, OfItsDevice(s).location, &access);
       },
       &S::EndMapping, &S::EndMapping},
      {"graph_create", HasGraphs, &S::Nothing,
       [](S& s) { return s.device.GraphCreate(&s.graph); }, &S::EndGraph,
       &S::Nothing},
      {"graph_exec_update", HasGraphs, &S::NewExec,
       [](S& s) { return s.device.GraphExecUpdate(s.exec, s.graph); },
       &S::EndExec, &S::EndExec},
      {"graph_mem_trim", HasGraphs, &S::Nothing,
       [](S& s) { return s.device.GraphMemTrim(); }, &S::Nothing, &S::Nothing},
      {"graph_mem_attribute", HasGraphs, &S::Nothing,
       [](S& s) {
         std::uint64_t value = 0;
         return s.device.GraphMemAttribute(GraphMemAttributeKind::kUsedCurrent,
                                           &value);
       },
       &S::Nothing, &S::Nothing},
  };
}

}  // namespace strata
