// Streams, and work of the host in them.

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
  return StreamCreateWithFlags(stream, cudaStreamDefault);
}

cudaError_t StreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
  return WithContext([&] { return cuStreamCreate(stream, flags); });
}

cudaError_t StreamCreateWithPriority(cudaStream_t* stream, unsigned flags,
                                     int priority) {
  return WithContext(
      [&] { return cuStreamCreateWithPriority(stream, flags, priority); });
}

cudaError_t StreamDestroy(cudaStream_t stream) {
  return WithContext([&] { return cuStreamDestroy(stream); });
}

STRATA_SIM_RUNTIME_STREAM_FUNCTION(StreamQuery, (cudaStream_t stream), {
  return WithContext([&] { return cuStreamQuery(StreamOf(null, stream)); });
})

STRATA_SIM_RUNTIME_STREAM_FUNCTION(StreamSynchronize, (cudaStream_t stream), {
  return WithContext(
      [&] { return cuStreamSynchronize(StreamOf(null, stream)); });
})

STRATA_SIM_RUNTIME_STREAM_FUNCTION(
    StreamWaitEvent, (cudaStream_t stream, cudaEvent_t event, unsigned flags), {
      return WithContext([&] {
        return cuStreamWaitEvent(StreamOf(null, stream), event, flags);
      });
    })

STRATA_SIM_RUNTIME_STREAM_FUNCTION(
    StreamGetId, (cudaStream_t stream, unsigned long long* id),  // NOLINT
    {
      return WithContext(
          [&] { return cuStreamGetId(StreamOf(null, stream), id); });
    })

STRATA_SIM_RUNTIME_STREAM_FUNCTION(StreamGetFlags,
                                   (cudaStream_t stream, unsigned* flags), {
                                     return WithContext([&] {
                                       return cuStreamGetFlags(
                                           StreamOf(null, stream), flags);
                                     });
                                   })

STRATA_SIM_RUNTIME_STREAM_FUNCTION(StreamGetPriority,
                                   (cudaStream_t stream, int* priority), {
                                     return WithContext([&] {
                                       return cuStreamGetPriority(
                                           StreamOf(null, stream), priority);
                                     });
                                   })

STRATA_SIM_RUNTIME_STREAM_FUNCTION(StreamGetDevice,
                                   (cudaStream_t stream, int* device), {
                                     return WithContext([&] {
                                       return cuStreamGetDevice(
                                           StreamOf(null, stream), device);
                                     });
                                   })

STRATA_SIM_RUNTIME_STREAM_FUNCTION(
    LaunchHostFunc,
    (cudaStream_t stream, cudaHostFn_t function, void* argument), {
      return WithContext([&] {
        return cuLaunchHostFunc(StreamOf(null, stream), function, argument);
      });
    })

// A call during a capture is refused, so each callback is called once.
STRATA_SIM_RUNTIME_STREAM_FUNCTION(
    StreamAddCallback,
    (cudaStream_t stream, cudaStreamCallback_t function, void* argument,
     unsigned flags),
    {
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
    })

// Managed memory does not move.
STRATA_SIM_RUNTIME_STREAM_FUNCTION(
    StreamAttachMemAsync,
    (cudaStream_t stream, void* ptr, std::size_t, unsigned), {
      return WithContext([&] {
        static_cast<void>(StreamOf(null, stream));
        return ptr != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
      });
    })

}  // namespace strata::simdriver::runtime
