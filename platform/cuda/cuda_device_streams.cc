// Streams and events of a GPU.

#include "strata/platform/cuda/cuda_device.h"
#include "strata/platform/cuda/cuda_types.h"

namespace strata::cuda {
namespace {

// The driver numbers streams from a start value that it does not document. Uids
// 0 (no stream) and 1 (the legacy stream) are reserved.
std::uint64_t UidOfId(DriverNumber id) { return std::uint64_t{id} + 2; }

// Strata assigns the uids of per-thread streams: a query of the driver would
// end a capture (cuda_semantics.md S8). The driver's numbers never reach bit
// 63. Thread numbers never reach the bits of the device instance.
constexpr std::uint64_t kPerThreadUids = std::uint64_t{1} << 63;
constexpr unsigned kThreadBits = 40;

}  // namespace

std::uint64_t CudaDevice::PerThreadUid() const {
  // Not the system's thread id, which is reused.
  return kPerThreadUids | instance_ << kThreadBits | CallingThreadNumber();
}

Status CudaDevice::CheckStream(const Stream& stream) const {
  const bool known =
      stream.device == ordinal_ && stream.handle != nullptr && stream.uid != 0;
  if (!known) return Status::kInvalidResourceHandle;
  if (stream.handle == CU_STREAM_PER_THREAD && stream.uid != PerThreadUid()) {
    return Status::kInvalidResourceHandle;
  }
  return Status::kSuccess;
}

Status CudaDevice::DoStreamCreate(Call* seen, Stream* stream, unsigned flags) {
  if (stream == nullptr) return Status::kInvalidValue;
  CUstream handle = nullptr;
  CUresult result = driver_.StreamCreate(&handle, flags);
  if (result != CUDA_SUCCESS) return ToStatus(result);
  DriverNumber id = 0;
  result = driver_.StreamGetId(handle, &id);
  if (result != CUDA_SUCCESS) {
    driver_.StreamDestroy(handle);
    return ToStatus(result);
  }
  *stream = Stream{handle, ordinal_, UidOfId(id)};
  seen->ptr = reinterpret_cast<std::uintptr_t>(handle);
  seen->stream_uid = stream->uid;
  return Status::kSuccess;
}

Status CudaDevice::DoStreamDestroy(Call*, Stream stream) {
  // The legacy and per-thread streams cannot be destroyed.
  if (stream.handle == CU_STREAM_LEGACY ||
      stream.handle == CU_STREAM_PER_THREAD) {
    return Status::kInvalidResourceHandle;
  }
  return ToStatus(driver_.StreamDestroy(ToCuda(stream)));
}

Stream CudaDevice::LegacyStream() {
  return Stream{CU_STREAM_LEGACY, ordinal_, kLegacyStreamUid};
}

Stream CudaDevice::PerThreadStream() {
  return Stream{CU_STREAM_PER_THREAD, ordinal_, PerThreadUid()};
}

Status CudaDevice::DoWrapStream(Call* seen, void* handle, Stream* stream) {
  if (stream == nullptr) return Status::kInvalidValue;
  if (handle == nullptr || handle == CU_STREAM_LEGACY) {
    *stream = LegacyStream();
  } else if (handle == CU_STREAM_PER_THREAD) {
    *stream = PerThreadStream();
  } else {
    CUcontext own = nullptr;
    CUcontext owner = nullptr;
    context_.Get(&own);
    CUresult result =
        driver_.StreamGetCtx(static_cast<CUstream>(handle), &owner);
    if (result != CUDA_SUCCESS) return ToStatus(result);
    if (owner != own) return Status::kInvalidResourceHandle;
    DriverNumber id = 0;
    result = driver_.StreamGetId(static_cast<CUstream>(handle), &id);
    if (result != CUDA_SUCCESS) return ToStatus(result);
    unsigned flags = 0;
    result = driver_.StreamGetFlags(static_cast<CUstream>(handle), &flags);
    if (result != CUDA_SUCCESS) return ToStatus(result);
    seen->value = flags;
    *stream = Stream{handle, ordinal_, UidOfId(id)};
  }
  seen->stream_uid = stream->uid;
  return Status::kSuccess;
}

Status CudaDevice::DoStreamSynchronize(Call*, Stream stream) {
  return ToStatus(driver_.StreamSynchronize(ToCuda(stream)));
}

Status CudaDevice::DoStreamQuery(Call*, Stream stream) {
  return ToStatus(driver_.StreamQuery(ToCuda(stream)));
}

Status CudaDevice::DoStreamWaitEvent(Call*, Stream stream, Event event,
                                     unsigned flags) {
  if (!event) return Status::kInvalidResourceHandle;
  return ToStatus(
      driver_.StreamWaitEvent(ToCuda(stream), ToCuda(event), flags));
}

Status CudaDevice::DoLaunchHostFunc(Call*, Stream stream, HostFunction function,
                                    void* argument) {
  if (function == nullptr) return Status::kInvalidValue;
  return ToStatus(driver_.LaunchHostFunc(ToCuda(stream), function, argument));
}

Status CudaDevice::DoEventCreate(Call* seen, Event* event, unsigned flags) {
  if (event == nullptr) return Status::kInvalidValue;
  CUevent handle = nullptr;
  const CUresult result = driver_.EventCreate(&handle, flags);
  return Give(result, handle, event, seen);
}

Status CudaDevice::DoEventDestroy(Call*, Event event) {
  if (!event) return Status::kInvalidResourceHandle;
  return ToStatus(driver_.EventDestroy(ToCuda(event)));
}

Status CudaDevice::DoEventRecord(Call*, Event event, Stream stream,
                                 unsigned flags) {
  if (!event) return Status::kInvalidResourceHandle;
  return ToStatus(
      driver_.EventRecordWithFlags(ToCuda(event), ToCuda(stream), flags));
}

Status CudaDevice::DoEventQuery(Call*, Event event) {
  if (!event) return Status::kInvalidResourceHandle;
  return ToStatus(driver_.EventQuery(ToCuda(event)));
}

Status CudaDevice::DoEventSynchronize(Call*, Event event) {
  if (!event) return Status::kInvalidResourceHandle;
  return ToStatus(driver_.EventSynchronize(ToCuda(event)));
}

}  // namespace strata::cuda
