// Events.

#include "strata/platform/simdriver/runtime/calls.h"

namespace strata::simdriver::runtime {

cudaError_t EventCreate(cudaEvent_t* event) {
  return EventCreateWithFlags(event, cudaEventDefault);
}

cudaError_t EventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  return WithContext([&] { return cuEventCreate(event, flags); });
}

cudaError_t EventDestroy(cudaEvent_t event) {
  return WithContext([&] { return cuEventDestroy(event); });
}

cudaError_t EventQuery(cudaEvent_t event) {
  return WithContext([&] { return cuEventQuery(event); });
}

cudaError_t EventSynchronize(cudaEvent_t event) {
  return WithContext([&] { return cuEventSynchronize(event); });
}

cudaError_t EventElapsedTime(float* ms, cudaEvent_t start, cudaEvent_t end) {
  return WithContext([&] { return cuEventElapsedTime(ms, start, end); });
}

STRATA_SIM_RUNTIME_STREAM_FUNCTION(EventRecord,
                                   (cudaEvent_t event, cudaStream_t stream), {
                                     return WithContext([&] {
                                       return cuEventRecord(
                                           event, StreamOf(null, stream));
                                     });
                                   })

STRATA_SIM_RUNTIME_STREAM_FUNCTION(
    EventRecordWithFlags,
    (cudaEvent_t event, cudaStream_t stream, unsigned flags), {
      return WithContext([&] {
        return cuEventRecordWithFlags(event, StreamOf(null, stream), flags);
      });
    })

}  // namespace strata::simdriver::runtime
