// Capture of streams of a GPU.

#include "strata/platform/cuda/cuda_device_run.h"
#include "strata/platform/cuda/cuda_types.h"

namespace strata::cuda {
namespace {

// `value` is the capture mode, or 1 if dependencies are replaced.
CallRecord CallAbout(DeviceCall device_call, std::uint64_t value = 0) {
  return RecordOf(device_call, 0, 0, value);
}

CUstreamCaptureMode ToCuda(CaptureMode mode) {
  return static_cast<CUstreamCaptureMode>(mode);
}

}  // namespace

Status CudaDevice::StreamBeginCapture(Stream stream, CaptureMode mode) {
  return RunOn(stream,
               CallAbout(DeviceCall::kStreamBeginCapture,
                         static_cast<std::uint64_t>(mode)),
               [&](CallRecord*) {
                 if (!IsKnown(mode)) return Status::kInvalidValue;
                 return ToStatus(driver_.StreamBeginCapture(
                     cuda::ToCuda(stream), ToCuda(mode)));
               });
}

Status CudaDevice::StreamBeginCaptureToGraph(Stream stream, Graph graph,
                                             const GraphNode* dependencies,
                                             std::size_t count,
                                             CaptureMode mode) {
  if (driver_.StreamBeginCaptureToGraph == nullptr) {
    return Status::kNotSupported;
  }
  CallRecord call = CallAbout(DeviceCall::kStreamBeginCaptureToGraph,
                              static_cast<std::uint64_t>(mode));
  call.ptr = ToNumber(graph);
  NoteDependencies(dependencies, count);
  return RunOn(stream, call, [&](CallRecord*) {
    if (!graph || !IsKnown(mode) || (dependencies == nullptr && count != 0)) {
      return Status::kInvalidValue;
    }
    const auto nodes = cuda::ToCuda(dependencies, count);
    return ToStatus(driver_.StreamBeginCaptureToGraph(
        cuda::ToCuda(stream), cuda::ToCuda(graph), nodes.data(), nullptr, count,
        ToCuda(mode)));
  });
}

Status CudaDevice::StreamEndCapture(Stream stream, Graph* graph) {
  return RunOn(stream, CallAbout(DeviceCall::kStreamEndCapture),
               [&](CallRecord* seen) {
                 if (graph == nullptr) return Status::kInvalidValue;
                 CUgraph made = nullptr;
                 const CUresult result =
                     driver_.StreamEndCapture(cuda::ToCuda(stream), &made);
                 if (result != CUDA_SUCCESS) return ToStatus(result);
                 graph->value = made;
                 seen->ptr = ToNumber(*graph);
                 return Status::kSuccess;
               });
}

Status CudaDevice::StreamIsCapturing(Stream stream, CaptureStatus* status) {
  return RunOn(stream, CallAbout(DeviceCall::kStreamIsCapturing),
               [&](CallRecord* seen) {
                 if (status == nullptr) return Status::kInvalidValue;
                 CUstreamCaptureStatus found = CU_STREAM_CAPTURE_STATUS_NONE;
                 const CUresult result =
                     driver_.StreamIsCapturing(cuda::ToCuda(stream), &found);
                 if (result != CUDA_SUCCESS) return ToStatus(result);
                 *status = static_cast<CaptureStatus>(found);
                 seen->value = static_cast<std::uint64_t>(found);
                 return Status::kSuccess;
               });
}

Status CudaDevice::StreamCaptureInfo(Stream stream, CaptureInfo* info) {
  if (driver_.StreamGetCaptureInfo == nullptr) return Status::kNotSupported;
  return RunOn(
      stream, CallAbout(DeviceCall::kStreamCaptureInfo), [&](CallRecord* seen) {
        if (info == nullptr) return Status::kInvalidValue;
        CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
        cuuint64_t id = 0;
        CUgraph graph = nullptr;
        const CUgraphNode* nodes = nullptr;
        // Without this argument, edges with data are an error.
        const CUgraphEdgeData* edges = nullptr;
        std::size_t count = 0;
        const CUresult result = driver_.StreamGetCaptureInfo(
            cuda::ToCuda(stream), &status, &id, &graph, &nodes, &edges, &count);
        if (result != CUDA_SUCCESS) return ToStatus(result);
        *info = CaptureInfo();
        info->status = static_cast<CaptureStatus>(status);
        seen->value = static_cast<std::uint64_t>(status);
        // The other results are defined in an active capture only.
        if (status != CU_STREAM_CAPTURE_STATUS_ACTIVE) {
          return Status::kSuccess;
        }
        info->id = id;
        info->graph.value = graph;
        seen->ptr = ToNumber(info->graph);
        info->dependencies = FromCuda(nodes, count);
        return Status::kSuccess;
      });
}

Status CudaDevice::StreamUpdateCaptureDependencies(
    Stream stream, const GraphNode* dependencies, std::size_t count,
    bool replace) {
  NoteDependencies(dependencies, count);
  return RunOn(
      stream,
      CallAbout(DeviceCall::kStreamUpdateCaptureDependencies, replace ? 1 : 0),
      [&](CallRecord*) {
        if (dependencies == nullptr && count != 0) {
          return Status::kInvalidValue;
        }
        auto nodes = cuda::ToCuda(dependencies, count);
        return ToStatus(driver_.StreamUpdateCaptureDependencies(
            cuda::ToCuda(stream), nodes.data(), count,
            replace ? CU_STREAM_SET_CAPTURE_DEPENDENCIES
                    : CU_STREAM_ADD_CAPTURE_DEPENDENCIES));
      });
}

Status CudaDevice::ThreadExchangeCaptureMode(CaptureMode* mode) {
  return Run(CallAbout(DeviceCall::kThreadExchangeCaptureMode),
             [&](CallRecord* seen) {
               if (mode == nullptr || !IsKnown(*mode)) {
                 return Status::kInvalidValue;
               }
               CUstreamCaptureMode exchanged = ToCuda(*mode);
               seen->value = static_cast<std::uint64_t>(*mode);
               const CUresult result =
                   driver_.ThreadExchangeStreamCaptureMode(&exchanged);
               if (result != CUDA_SUCCESS) return ToStatus(result);
               *mode = static_cast<CaptureMode>(exchanged);
               return Status::kSuccess;
             });
}

}  // namespace strata::cuda
