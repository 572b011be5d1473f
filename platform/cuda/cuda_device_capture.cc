// Capture of streams of a GPU.

#include "strata/platform/cuda/cuda_device.h"
#include "strata/platform/cuda/cuda_types.h"

namespace strata::cuda {

Status CudaDevice::DoStreamBeginCapture(Call*, Stream stream,
                                        CaptureMode mode) {
  if (!IsKnown(mode)) return Status::kInvalidValue;
  return ToStatus(driver_.StreamBeginCapture(ToCuda(stream), ToCuda(mode)));
}

Status CudaDevice::DoStreamBeginCaptureToGraph(Call*, Stream stream,
                                               Graph graph,
                                               const GraphNode* dependencies,
                                               std::size_t count,
                                               CaptureMode mode) {
  if (!graph || !IsKnown(mode) || (dependencies == nullptr && count != 0)) {
    return Status::kInvalidValue;
  }
  const auto nodes = ToCuda(dependencies, count);
  return ToStatus(driver_.StreamBeginCaptureToGraph(
      ToCuda(stream), ToCuda(graph), nodes.data(), nullptr, count,
      ToCuda(mode)));
}

Status CudaDevice::DoStreamEndCapture(Call* seen, Stream stream, Graph* graph) {
  if (graph == nullptr) return Status::kInvalidValue;
  CUgraph made = nullptr;
  const CUresult result = driver_.StreamEndCapture(ToCuda(stream), &made);
  return Give(result, made, graph, seen);
}

Status CudaDevice::DoStreamIsCapturing(Call* seen, Stream stream,
                                       CaptureStatus* status) {
  if (status == nullptr) return Status::kInvalidValue;
  CUstreamCaptureStatus found = CU_STREAM_CAPTURE_STATUS_NONE;
  const CUresult result = driver_.StreamIsCapturing(ToCuda(stream), &found);
  if (result != CUDA_SUCCESS) return ToStatus(result);
  *status = static_cast<CaptureStatus>(found);
  seen->value = static_cast<std::uint64_t>(found);
  return Status::kSuccess;
}

Status CudaDevice::DoStreamCaptureInfo(Call* seen, Stream stream,
                                       CaptureInfo* info) {
  if (info == nullptr) return Status::kInvalidValue;
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  cuuint64_t id = 0;
  CUgraph graph = nullptr;
  const CUgraphNode* nodes = nullptr;
  // Without this argument, edges with data are an error.
  const CUgraphEdgeData* edges = nullptr;
  std::size_t count = 0;
  const CUresult result = driver_.StreamGetCaptureInfo(
      ToCuda(stream), &status, &id, &graph, &nodes, &edges, &count);
  if (result != CUDA_SUCCESS) return ToStatus(result);
  *info = CaptureInfo();
  info->status = static_cast<CaptureStatus>(status);
  seen->value = static_cast<std::uint64_t>(status);
  // The other results are defined in an active capture only.
  if (status != CU_STREAM_CAPTURE_STATUS_ACTIVE) return Status::kSuccess;
  info->id = id;
  info->graph.value = graph;
  seen->ptr = NumberOf(info->graph);
  info->dependencies = FromCuda(nodes, count);
  return Status::kSuccess;
}

Status CudaDevice::DoStreamUpdateCaptureDependencies(
    Call*, Stream stream, const GraphNode* dependencies, std::size_t count,
    bool replace) {
  if (dependencies == nullptr && count != 0) return Status::kInvalidValue;
  auto nodes = ToCuda(dependencies, count);
  return ToStatus(driver_.StreamUpdateCaptureDependencies(
      ToCuda(stream), nodes.data(), count,
      replace ? CU_STREAM_SET_CAPTURE_DEPENDENCIES
              : CU_STREAM_ADD_CAPTURE_DEPENDENCIES));
}

Status CudaDevice::DoThreadExchangeCaptureMode(Call*, CaptureMode* mode) {
  if (mode == nullptr || !IsKnown(*mode)) return Status::kInvalidValue;
  CUstreamCaptureMode exchanged = ToCuda(*mode);
  const CUresult result = driver_.ThreadExchangeStreamCaptureMode(&exchanged);
  if (result != CUDA_SUCCESS) return ToStatus(result);
  *mode = static_cast<CaptureMode>(exchanged);
  return Status::kSuccess;
}

}  // namespace strata::cuda
