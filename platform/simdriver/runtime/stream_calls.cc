// Streams, events, and work of the host in streams.

#include <memory>

#include "strata/platform/simdriver/runtime/calls.h"

namespace strata::simdriver::runtime {
namespace {

// A callback of a stream that is waiting for its turn.
struct Callback {
  cudaStreamCallback_t function;
  cudaStream_t stream;
  void* argument;
};

void CallBack(void* argument) {
  const std::unique_ptr<Callback> callback(static_cast<Callback*>(argument));
  callback->function(callback->stream, cudaSuccess, callback->argument);
}

}  // namespace

cudaError_t StreamCreate(cudaStream_t* stream) {
  return WithContext([&] { return cuStreamCreate(stream, CU_STREAM_DEFAULT); });
}

cudaError_t EventCreate(cudaEvent_t* event) {
  return WithContext([&] { return cuEventCreate(event, CU_EVENT_DEFAULT); });
}

cudaError_t StreamSynchronize(NullStream null, cudaStream_t stream) {
  return WithContext(
      [&] { return cuStreamSynchronize(StreamOf(null, stream)); });
}

// No capture takes one, so that each is called once.
cudaError_t StreamAddCallback(NullStream null, cudaStream_t stream,
                              cudaStreamCallback_t function, void* argument,
                              unsigned flags) {
  return WithContext([&] {
    if (function == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    CUresult result = cuStreamIsCapturing(StreamOf(null, stream), &status);
    if (result != CUDA_SUCCESS) return result;
    if (status != CU_STREAM_CAPTURE_STATUS_NONE) {
      return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    }
    auto callback = std::make_unique<Callback>(
        Callback{function, StreamOf(null, stream), argument});
    result = cuLaunchHostFunc(callback->stream, &CallBack, callback.get());
    if (result == CUDA_SUCCESS) static_cast<void>(callback.release());
    return result;
  });
}

// Managed memory does not move.
cudaError_t StreamAttachMemAsync(NullStream, cudaStream_t, void* ptr,
                                 std::size_t, unsigned) {
  return WithContext(
      [&] { return ptr != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE; });
}

}  // namespace strata::simdriver::runtime
