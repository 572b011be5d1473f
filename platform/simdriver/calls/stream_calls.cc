// Streams, and work of the host in them.

#include <algorithm>
#include <shared_mutex>
#include <unordered_map>

#include "strata/platform/simdriver/attributes.h"
#include "strata/platform/simdriver/context.h"
#include "strata/platform/simdriver/host_reads.h"

namespace strata::simdriver {
namespace {

struct StreamRecord {
  Stream stream;
  unsigned flags = 0;
  int priority = 0;
};

// The streams that the program created, by handle.
//
// Model: reads no state of the device, because such a call can invalidate a
//   capture.
// Threads: any.
class StreamList {
 public:
  void Add(const StreamRecord& record) {
    std::unique_lock lock(mutex_);
    records_.insert_or_assign(record.stream.handle, record);
  }

  void Remove(const Stream& stream) {
    std::unique_lock lock(mutex_);
    const auto found = records_.find(stream.handle);
    // Another thread's new stream may have the handle by now.
    if (found != records_.end() && found->second.stream == stream) {
      records_.erase(found);
    }
  }

  // False if there is none.
  bool Find(CUstream handle, StreamRecord* record) const {
    std::shared_lock lock(mutex_);
    const auto found = records_.find(handle);
    if (found == records_.end()) return false;
    *record = found->second;
    return true;
  }

 private:
  mutable std::shared_mutex mutex_;
  std::unordered_map<void*, StreamRecord> records_;  // guarded by mutex_
};

StreamList& Streams() {
  static auto* const streams = new StreamList();
  return *streams;
}

// The streams that the null handle and the two explicit handles name.
StreamRecord DefaultStream(NullStream null, CUstream handle,
                           SimDevice& device) {
  StreamRecord record;
  const bool own = handle == CU_STREAM_PER_THREAD ||
                   (handle == nullptr && null == NullStream::kPerThread);
  record.stream = own ? device.PerThreadStream() : device.LegacyStream();
  return record;
}

bool IsDefault(CUstream handle) {
  return handle == nullptr || handle == CU_STREAM_LEGACY ||
         handle == CU_STREAM_PER_THREAD;
}

CUresult FindRecord(NullStream null, CUstream handle, SimDevice** device,
                    StreamRecord* record) {
  const CUresult result = CurrentDevice(device);
  if (result != CUDA_SUCCESS) return result;
  if (IsDefault(handle)) {
    *record = DefaultStream(null, handle, **device);
    return CUDA_SUCCESS;
  }
  if (!Streams().Find(handle, record)) return CUDA_ERROR_INVALID_HANDLE;
  *device = &FindProcess()->platform.sim_device(record->stream.device);
  return CUDA_SUCCESS;
}

// Runs `body(record)`, which writes the result.
template <class Body>
CUresult Describe(NullStream null, CUstream handle, const void* out,
                  Body body) {
  SimDevice* device = nullptr;
  StreamRecord record;
  const CUresult result = FindRecord(null, handle, &device, &record);
  if (result != CUDA_SUCCESS) return result;
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  body(record);
  return CUDA_SUCCESS;
}

}  // namespace

CUresult FindStream(NullStream null, CUstream handle, SimDevice** device,
                    Stream* stream) {
  StreamRecord record;
  const CUresult result = FindRecord(null, handle, device, &record);
  if (result == CUDA_SUCCESS) *stream = record.stream;
  return result;
}

CUresult StreamCreateWithPriority(CUstream* stream, unsigned flags,
                                  int priority) {
  return OnCurrentDevice([&](SimDevice& device) {
    if (stream == nullptr) return Status::kInvalidValue;
    StreamRecord record;
    const Status status = device.StreamCreate(&record.stream, flags);
    if (status != Status::kSuccess) return status;
    record.flags = flags;
    record.priority = std::clamp(priority, kGreatestPriority, kLeastPriority);
    Streams().Add(record);
    *stream = static_cast<CUstream>(record.stream.handle);
    return Status::kSuccess;
  });
}

CUresult StreamCreate(CUstream* stream, unsigned flags) {
  return StreamCreateWithPriority(stream, flags, kLeastPriority);
}

CUresult StreamDestroy(CUstream handle) {
  if (IsDefault(handle)) {
    const CUresult result = Ready();
    return result == CUDA_SUCCESS ? CUDA_ERROR_INVALID_HANDLE : result;
  }
  return OnStream(NullStream::kLegacy, handle,
                  [](SimDevice& device, const Stream& stream) {
                    const Status status = device.StreamDestroy(stream);
                    if (status == Status::kSuccess) Streams().Remove(stream);
                    return status;
                  });
}

// NOLINTNEXTLINE(google-runtime-int): the type of cuda.h.
CUresult StreamGetId(NullStream null, CUstream handle, unsigned long long* id) {
  return Describe(null, handle, id,
                  [&](const StreamRecord& record) { *id = record.stream.uid; });
}

CUresult StreamGetFlags(NullStream null, CUstream handle, unsigned* flags) {
  return Describe(null, handle, flags,
                  [&](const StreamRecord& record) { *flags = record.flags; });
}

CUresult StreamGetPriority(NullStream null, CUstream handle, int* priority) {
  return Describe(null, handle, priority, [&](const StreamRecord& record) {
    *priority = record.priority;
  });
}

CUresult StreamGetCtx(NullStream null, CUstream handle, CUcontext* context) {
  return Describe(null, handle, context, [&](const StreamRecord& record) {
    *context = HandleOf(PrimaryContext(record.stream.device));
  });
}

#if CUDA_VERSION >= 12080
CUresult StreamGetDevice(NullStream null, CUstream handle, CUdevice* device) {
  return Describe(null, handle, device, [&](const StreamRecord& record) {
    *device = record.stream.device;
  });
}
#endif

CUresult StreamSynchronize(NullStream null, CUstream handle) {
  return OnStream(null, handle, [](SimDevice& device, const Stream& stream) {
    const Status status = device.StreamSynchronize(stream);
    Reads().AfterWait();
    return status;
  });
}

CUresult StreamQuery(NullStream null, CUstream handle) {
  return OnStream(null, handle, &SimDevice::StreamQuery);
}

CUresult StreamWaitEvent(NullStream null, CUstream handle, CUevent event,
                         unsigned flags) {
  return OnStream(null, handle, &SimDevice::StreamWaitEvent, Event{event},
                  flags);
}

CUresult LaunchHostFunc(NullStream null, CUstream handle, CUhostFn function,
                        void* argument) {
  return OnStream(null, handle, &SimDevice::LaunchHostFunc, function, argument);
}

}  // namespace strata::simdriver
