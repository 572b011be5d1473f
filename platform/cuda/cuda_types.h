#ifndef STRATA_PLATFORM_CUDA_CUDA_TYPES_H_
#define STRATA_PLATFORM_CUDA_CUDA_TYPES_H_

#include <cuda.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "strata/platform/calls/call_frame.h"
#include "strata/platform/calls/call_record.h"
#include "strata/platform/cuda/cuda_driver.h"
#include "strata/platform/memory_types.h"
#include "strata/platform/status.h"
#include "strata/platform/stream.h"

namespace strata::cuda {

// Conversions between Strata's value types and the driver's. Enumerators have
// the driver's values, so that a cast converts them.

inline CUstream ToCuda(const Stream& stream) {
  return static_cast<CUstream>(stream.handle);
}
inline CUevent ToCuda(Event event) { return static_cast<CUevent>(event.value); }
inline CUmemoryPool ToCuda(MemPool pool) {
  return static_cast<CUmemoryPool>(pool.value);
}
inline CUgraph ToCuda(Graph graph) { return static_cast<CUgraph>(graph.value); }
inline CUgraphExec ToCuda(GraphExec exec) {
  return static_cast<CUgraphExec>(exec.value);
}
inline CUgraphNode ToCuda(GraphNode node) {
  return static_cast<CUgraphNode>(node.value);
}
inline CUuserObject ToCuda(UserObject object) {
  return static_cast<CUuserObject>(object.value);
}

inline CUmemLocation ToCuda(Location location) {
  CUmemLocation result = {};
  result.type = static_cast<CUmemLocationType>(location.kind);
  result.id = location.id;
  return result;
}

inline CUmemAllocationHandleType ToCuda(ShareType type) {
  return static_cast<CUmemAllocationHandleType>(type);
}

inline CUmemPool_attribute ToCuda(PoolAttribute attribute) {
  return static_cast<CUmemPool_attribute>(attribute);
}

inline CUstreamCaptureMode ToCuda(CaptureMode mode) {
  return static_cast<CUstreamCaptureMode>(mode);
}

CUmemAllocationProp ToCuda(const MemProperties& properties);
std::vector<CUmemAccessDesc> ToCuda(const AccessDescriptor* access,
                                    std::size_t count);
std::vector<CUgraphNode> ToCuda(const GraphNode* nodes, std::size_t count);
std::vector<GraphNode> FromCuda(const CUgraphNode* nodes, std::size_t count);

// The operand of the driver's import calls: the descriptor itself, or the
// address of the 64 bytes in `shareable`.
inline void* OsHandle(ShareType type, Shareable* shareable) {
  if (type == ShareType::kFabric) return shareable->fabric.data();
  return reinterpret_cast<void*>(static_cast<std::intptr_t>(shareable->fd));
}

// Exports a handle: `call(void*)` writes the descriptor or the 64 bytes.
template <class Call>
Status Export(ShareType type, Shareable* shareable, Call call) {
  if (shareable == nullptr || type == ShareType::kNone) {
    return Status::kInvalidValue;
  }
  Shareable made;
  void* data = &made.fd;
  if (type == ShareType::kFabric) data = made.fabric.data();
  const CUresult result = call(data);
  if (result == CUDA_SUCCESS) *shareable = made;
  return ToStatus(result);
}

// Completes a call that made `made`, if `result` is a success: writes it to
// `*out` and to the record of the call.
template <class Made, class Out>
Status Give(CUresult result, Made made, Out* out, CallRecord* seen) {
  if (result != CUDA_SUCCESS) return ToStatus(result);
  if constexpr (requires { out->value; }) {
    out->value = made;
  } else {
    *out = made;
  }
  seen->ptr = NumberOf(*out);
  return Status::kSuccess;
}

}  // namespace strata::cuda

#endif  // STRATA_PLATFORM_CUDA_CUDA_TYPES_H_
