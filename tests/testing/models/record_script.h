#ifndef STRATA_TESTS_TESTING_MODELS_RECORD_SCRIPT_H_
#define STRATA_TESTS_TESTING_MODELS_RECORD_SCRIPT_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "strata/platform/calls/call_record.h"
#include "strata/platform/check/hazard_checker.h"

namespace strata {

// Writes the calls of a program as records for a HazardChecker. Each function
// is one successful call of one device by `thread`.
class RecordScript {
 public:
  std::uint64_t thread = 1;
  std::uint64_t node = 0;  // of the next call, which resets it
  std::int32_t device = 0;

  void CreateStream(std::uint64_t uid, unsigned flags = 1) {
    Add(DeviceCall::kStreamCreate, 0, 0, flags, uid);
  }
  void DestroyStream(std::uint64_t uid) {
    Add(DeviceCall::kStreamDestroy, 0, 0, 0, uid);
  }
  void Sync(std::uint64_t uid) {
    Add(DeviceCall::kStreamSynchronize, 0, 0, 0, uid);
  }
  void SyncDevice() { Add(DeviceCall::kSynchronize); }
  void Record(std::uint64_t event, std::uint64_t uid, unsigned flags = 0) {
    Add(DeviceCall::kEventRecord, event, 0, flags, uid);
  }
  void Wait(std::uint64_t uid, std::uint64_t event, unsigned flags = 0) {
    Add(DeviceCall::kStreamWaitEvent, event, 0, flags, uid);
  }
  void Query(std::uint64_t event, Status status = Status::kSuccess) {
    Add(DeviceCall::kEventQuery, event, 0, 0, 0, status);
  }
  void SyncEvent(std::uint64_t event) {
    Add(DeviceCall::kEventSynchronize, event);
  }
  void Release(std::uint64_t tag) { Add(DeviceCall::kHostRelease, tag); }
  void Acquire(std::uint64_t tag) { Add(DeviceCall::kHostAcquire, tag); }

  void MemAlloc(std::uint64_t ptr, std::uint64_t bytes) {
    Add(DeviceCall::kMemAlloc, ptr, bytes);
  }
  void MemFree(std::uint64_t ptr) { Add(DeviceCall::kMemFree, ptr); }
  void MallocHost(std::uint64_t ptr, std::uint64_t bytes) {
    Add(DeviceCall::kMallocHost, ptr, bytes);
  }
  void FreeHost(std::uint64_t ptr) { Add(DeviceCall::kFreeHost, ptr); }
  void PoolAlloc(std::uint64_t ptr, std::uint64_t bytes, std::uint64_t uid) {
    Add(DeviceCall::kMallocFromPoolAsync, ptr, bytes, 1, uid);
  }
  void PoolFree(std::uint64_t ptr, std::uint64_t uid) {
    Add(DeviceCall::kFreeAsync, ptr, 0, 0, uid);
  }
  void CreateMemory(std::uint64_t handle, std::uint64_t bytes) {
    Add(DeviceCall::kCreateMemory, handle, bytes);
  }
  void ReleaseMemory(std::uint64_t handle) {
    Add(DeviceCall::kReleaseMemory, handle);
  }
  void Map(std::uint64_t ptr, std::uint64_t bytes, std::uint64_t handle) {
    Add(DeviceCall::kMapRange, ptr, bytes, handle);
  }
  void Unmap(std::uint64_t ptr, std::uint64_t bytes) {
    Add(DeviceCall::kUnmapRange, ptr, bytes);
  }

  void Write(std::uint64_t ptr, std::uint64_t bytes, std::uint64_t uid) {
    Add(DeviceCall::kMemsetAsync, ptr, bytes, 0, uid);
  }
  void Read(std::uint64_t ptr, std::uint64_t bytes, std::uint64_t uid) {
    Add(DeviceCall::kUse, ptr, bytes, 0, uid);
  }
  void Copy(std::uint64_t target, std::uint64_t source, std::uint64_t bytes,
            std::uint64_t uid) {
    Add(DeviceCall::kMemcpyAsync, target, bytes, source, uid);
  }

  void Alloc(std::uint64_t ptr, std::uint64_t bytes, std::uint64_t uid) {
    Add(DeviceCall::kBlockAlloc, ptr, bytes, 0, uid);
  }
  void Free(std::uint64_t ptr, std::uint64_t uid) {
    Add(DeviceCall::kBlockFree, ptr, 0, 0, uid);
  }
  void Mark(std::uint64_t ptr, std::uint64_t uid) {
    Add(DeviceCall::kBlockMark, ptr, 0, 0, uid);
  }

  // A block that its stream writes, and then frees.
  void AllocWrite(std::uint64_t ptr, std::uint64_t bytes, std::uint64_t uid) {
    Alloc(ptr, bytes, uid);
    Write(ptr, bytes, uid);
  }
  void AllocWriteFree(std::uint64_t ptr, std::uint64_t bytes,
                      std::uint64_t uid) {
    AllocWrite(ptr, bytes, uid);
    Free(ptr, uid);
  }
  // Orders later work of `to` behind the work submitted to `from`.
  void Order(std::uint64_t event, std::uint64_t from, std::uint64_t to) {
    Record(event, from);
    Wait(to, event);
  }

  void Begin(std::uint64_t uid) {
    Add(DeviceCall::kStreamBeginCapture, 0, 0, 0, uid);
  }
  void BeginToGraph(std::uint64_t uid, std::uint64_t graph) {
    Add(DeviceCall::kStreamBeginCaptureToGraph, graph, 0, 0, uid);
  }
  void End(std::uint64_t uid, std::uint64_t graph,
           Status status = Status::kSuccess) {
    Add(DeviceCall::kStreamEndCapture, graph, 0, 0, uid, status);
  }
  void Dependency(std::uint64_t of) { Add(DeviceCall::kDependency, of); }
  void Update(std::uint64_t uid, bool replace) {
    Add(DeviceCall::kStreamUpdateCaptureDependencies, 0, 0, replace ? 1 : 0,
        uid);
  }
  void Instantiate(std::uint64_t exec, std::uint64_t graph) {
    Add(DeviceCall::kGraphInstantiate, exec, 0, graph);
  }
  void UpdateExec(std::uint64_t exec, std::uint64_t graph) {
    Add(DeviceCall::kGraphExecUpdate, exec, 0, graph);
  }
  void Launch(std::uint64_t exec, std::uint64_t uid) {
    Add(DeviceCall::kGraphLaunch, exec, 0, 0, uid);
  }

  void Add(DeviceCall call, std::uint64_t ptr = 0, std::uint64_t bytes = 0,
           std::uint64_t value = 0, std::uint64_t uid = 0,
           Status status = Status::kSuccess) {
    CallRecord record = RecordOf(call, ptr, bytes, value);
    record.device = device;
    record.stream_uid = uid;
    record.status = status;
    record.thread = thread;
    record.node = node;
    record.time_ns = records.size();
    node = 0;
    records.push_back(record);
    checker.Observe(record);
  }

  // The kinds found so far, each once, in order, separated by blanks.
  std::string Kinds() const {
    std::string text;
    for (const check::HazardReport& report : checker.hazards()) {
      const std::string kind = check::HazardKindName(report.kind);
      if (text.find(kind) != std::string::npos) continue;
      text.append(text.empty() ? "" : " ").append(kind);
    }
    return text;
  }

  std::vector<CallRecord> records;
  check::HazardChecker checker;
};

}  // namespace strata

#endif  // STRATA_TESTS_TESTING_MODELS_RECORD_SCRIPT_H_
