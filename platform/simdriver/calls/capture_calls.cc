// Captures of streams.

#include <cstdint>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "strata/platform/simdriver/context.h"
#include "strata/platform/simdriver/types.h"

namespace strata::simdriver {
namespace {

// The results of the capture-info calls, of which all but the first may be
// null.
struct InfoResults {
  CUstreamCaptureStatus* status = nullptr;
  cuuint64_t* id = nullptr;
  CUgraph* graph = nullptr;
  const CUgraphNode** nodes = nullptr;
  const CUgraphEdgeData** edges = nullptr;
  std::size_t* count = nullptr;
};

// Arrays that the last call for a stream returned. Valid until the next call
// for it.
struct InfoArrays {
  std::vector<CUgraphNode> nodes;
  std::vector<CUgraphEdgeData> edges;
};

InfoArrays& ArraysOf(const Stream& stream) {
  static auto* const mutex = new std::mutex();
  static auto* const arrays =
      new std::unordered_map<std::uint64_t, InfoArrays>();
  // Handles of streams are reused, so there are few entries. The handle of the
  // per-thread stream is equal in all threads, so the uid is the key there.
  const auto handle = reinterpret_cast<std::uintptr_t>(stream.handle);
  std::lock_guard lock(*mutex);
  return (*arrays)[handle == kPerThreadHandle ? stream.uid : handle];
}

void PutInfo(const Stream& stream, const CaptureInfo& info,
             const InfoResults& results) {
  *results.status = static_cast<CUstreamCaptureStatus>(info.status);
  if (info.status != CaptureStatus::kActive) return;
  if (results.id != nullptr) *results.id = info.id;
  if (results.graph != nullptr) {
    *results.graph = static_cast<CUgraph>(info.graph.value);
  }
  InfoArrays& arrays = ArraysOf(stream);
  arrays.nodes.clear();
  for (const GraphNode node : info.dependencies) {
    arrays.nodes.push_back(static_cast<CUgraphNode>(node.value));
  }
  arrays.edges.assign(arrays.nodes.size(), CUgraphEdgeData{});
  if (results.nodes != nullptr) *results.nodes = arrays.nodes.data();
  if (results.edges != nullptr) *results.edges = arrays.edges.data();
  if (results.count != nullptr) *results.count = arrays.nodes.size();
}

}  // namespace

CUresult StreamBeginGlobalCapture(NullStream null, CUstream handle) {
  return StreamBeginCapture(null, handle, CU_STREAM_CAPTURE_MODE_GLOBAL);
}

CUresult StreamBeginCapture(NullStream null, CUstream handle,
                            CUstreamCaptureMode mode) {
  return OnStream(null, handle, &SimDevice::StreamBeginCapture,
                  static_cast<CaptureMode>(mode));
}

CUresult StreamBeginCaptureToGraph(NullStream null, CUstream handle,
                                   CUgraph graph, const CUgraphNode* nodes,
                                   const CUgraphEdgeData* edges,
                                   std::size_t count,
                                   CUstreamCaptureMode mode) {
  return OnStream(null, handle, [&](SimDevice& device, const Stream& stream) {
    if (nodes == nullptr && count != 0) return Status::kInvalidValue;
    if (!AreDefault(edges, count)) return Status::kNotSupported;
    return device.StreamBeginCaptureToGraph(
        stream, {graph}, ToStrata(nodes, count).data(), count,
        static_cast<CaptureMode>(mode));
  });
}

CUresult StreamEndCapture(NullStream null, CUstream handle, CUgraph* graph) {
  return OnStream(null, handle, [&](SimDevice& device, const Stream& stream) {
    if (graph == nullptr) return Status::kInvalidValue;
    Graph made;
    const Status status = device.StreamEndCapture(stream, &made);
    // A capture that failed has no graph.
    *graph = static_cast<CUgraph>(made.value);
    return status;
  });
}

CUresult StreamIsCapturing(NullStream null, CUstream handle,
                           CUstreamCaptureStatus* status) {
  return OnStream(null, handle, [&](SimDevice& device, const Stream& stream) {
    if (status == nullptr) return Status::kInvalidValue;
    CaptureStatus found = CaptureStatus::kNone;
    const Status result = device.StreamIsCapturing(stream, &found);
    if (result == Status::kSuccess) {
      *status = static_cast<CUstreamCaptureStatus>(found);
    }
    return result;
  });
}

CUresult StreamGetCaptureId(NullStream null, CUstream handle,
                            CUstreamCaptureStatus* status, cuuint64_t* id) {
  return StreamGetCaptureEdges(null, handle, status, id, nullptr, nullptr,
                               nullptr, nullptr);
}

CUresult StreamGetCaptureNodes(NullStream null, CUstream handle,
                               CUstreamCaptureStatus* status, cuuint64_t* id,
                               CUgraph* graph, const CUgraphNode** nodes,
                               std::size_t* count) {
  return StreamGetCaptureEdges(null, handle, status, id, graph, nodes, nullptr,
                               count);
}

CUresult StreamGetCaptureEdges(NullStream null, CUstream handle,
                               CUstreamCaptureStatus* status, cuuint64_t* id,
                               CUgraph* graph, const CUgraphNode** nodes,
                               const CUgraphEdgeData** edges,
                               std::size_t* count) {
  return OnStream(null, handle, [&](SimDevice& device, const Stream& stream) {
    if (status == nullptr) return Status::kInvalidValue;
    CaptureInfo info;
    const Status result = device.StreamCaptureInfo(stream, &info);
    if (result == Status::kSuccess) {
      PutInfo(stream, info, {status, id, graph, nodes, edges, count});
    }
    return result;
  });
}

CUresult StreamUpdateCaptureDependencies(NullStream null, CUstream handle,
                                         CUgraphNode* nodes, std::size_t count,
                                         unsigned flags) {
  return StreamUpdateCaptureEdges(null, handle, nodes, nullptr, count, flags);
}

CUresult StreamUpdateCaptureEdges(NullStream null, CUstream handle,
                                  CUgraphNode* nodes,
                                  const CUgraphEdgeData* edges,
                                  std::size_t count, unsigned flags) {
  return OnStream(null, handle, [&](SimDevice& device, const Stream& stream) {
    if (flags > CU_STREAM_SET_CAPTURE_DEPENDENCIES ||
        (nodes == nullptr && count != 0)) {
      return Status::kInvalidValue;
    }
    if (!AreDefault(edges, count)) return Status::kNotSupported;
    return device.StreamUpdateCaptureDependencies(
        stream, ToStrata(nodes, count).data(), count,
        flags == CU_STREAM_SET_CAPTURE_DEPENDENCIES);
  });
}

CUresult ThreadExchangeStreamCaptureMode(CUstreamCaptureMode* mode) {
  const CUresult result = Ready();
  if (result != CUDA_SUCCESS) return result;
  if (mode == nullptr) return CUDA_ERROR_INVALID_VALUE;
  auto exchanged = static_cast<CaptureMode>(*mode);
  // The mode belongs to the thread, so any device can exchange it.
  const Status status =
      FindProcess()->platform.device(0).ThreadExchangeCaptureMode(&exchanged);
  if (status == Status::kSuccess) {
    *mode = static_cast<CUstreamCaptureMode>(exchanged);
  }
  return ToResult(status);
}

}  // namespace strata::simdriver
