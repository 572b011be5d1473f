#include "strata/platform/cuda/cuda_types.h"

namespace strata::cuda {

CUmemAllocationProp ToCuda(const MemProperties& properties) {
  CUmemAllocationProp result = {};
  result.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  result.requestedHandleTypes = ToCuda(properties.share);
  result.location = ToCuda(properties.location);
  result.allocFlags.compressionType = properties.compress
                                          ? CU_MEM_ALLOCATION_COMP_GENERIC
                                          : CU_MEM_ALLOCATION_COMP_NONE;
  result.allocFlags.gpuDirectRDMACapable = properties.rdma ? 1 : 0;
  return result;
}

std::vector<CUmemAccessDesc> ToCuda(const AccessDescriptor* access,
                                    std::size_t count) {
  std::vector<CUmemAccessDesc> result(count);
  for (std::size_t i = 0; i < count; ++i) {
    result[i].location = ToCuda(access[i].location);
    result[i].flags = static_cast<CUmemAccess_flags>(access[i].access);
  }
  return result;
}

std::vector<CUgraphNode> ToCuda(const GraphNode* nodes, std::size_t count) {
  std::vector<CUgraphNode> result(count);
  for (std::size_t i = 0; i < count; ++i) result[i] = ToCuda(nodes[i]);
  return result;
}

std::vector<GraphNode> FromCuda(const CUgraphNode* nodes, std::size_t count) {
  std::vector<GraphNode> result(count);
  for (std::size_t i = 0; i < count; ++i) result[i].value = nodes[i];
  return result;
}

}  // namespace strata::cuda
