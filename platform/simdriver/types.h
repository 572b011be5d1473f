#ifndef STRATA_PLATFORM_SIMDRIVER_TYPES_H_
#define STRATA_PLATFORM_SIMDRIVER_TYPES_H_

#include <cuda.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "strata/platform/memory_types.h"
#include "strata/platform/stream.h"

namespace strata::simdriver {

// Convert values of the driver to the types of Strata, which have the same
// numbers. A function that returns a bool returns false if a reserved field is
// not zero, or if CUDA does not define the value.

inline Location ToStrata(const CUmemLocation& location) {
  return {static_cast<Location::Kind>(location.type), location.id};
}

inline bool ToStrata(CUmemAllocationHandleType type, ShareType* share) {
  *share = static_cast<ShareType>(type);
  return type == CU_MEM_HANDLE_TYPE_NONE ||
         type == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR ||
         type == CU_MEM_HANDLE_TYPE_FABRIC;
}

template <std::size_t kCount>
bool AreZero(const unsigned char (&bytes)[kCount]) {
  return std::all_of(bytes, bytes + kCount,
                     [](unsigned char byte) { return byte == 0; });
}

// Whether the field `usage`, which older headers lack, asks for nothing.
template <class Props>
bool HasNoUsage(const Props& props) {
  if constexpr (requires { props.usage; }) {
    return props.usage == 0;
  } else {
    return true;
  }
}

inline bool ToStrata(const CUmemAllocationProp& prop,
                     MemProperties* properties) {
  properties->location = ToStrata(prop.location);
  properties->compress =
      prop.allocFlags.compressionType == CU_MEM_ALLOCATION_COMP_GENERIC;
  properties->rdma = prop.allocFlags.gpuDirectRDMACapable != 0;
  return ToStrata(prop.requestedHandleTypes, &properties->share) &&
         prop.type == CU_MEM_ALLOCATION_TYPE_PINNED &&
         prop.win32HandleMetaData == nullptr && HasNoUsage(prop.allocFlags) &&
         AreZero(prop.allocFlags.reserved);
}

inline bool ToStrata(const CUmemPoolProps& props, MemProperties* properties) {
  properties->location = ToStrata(props.location);
  return ToStrata(props.handleTypes, &properties->share) &&
         props.allocType == CU_MEM_ALLOCATION_TYPE_PINNED &&
         props.win32SecurityAttributes == nullptr && HasNoUsage(props) &&
         AreZero(props.reserved);
}

inline std::vector<AccessDescriptor> ToStrata(const CUmemAccessDesc* access,
                                              std::size_t count) {
  std::vector<AccessDescriptor> result(count);
  for (std::size_t i = 0; i < count; ++i) {
    result[i] = {ToStrata(access[i].location),
                 static_cast<Access>(access[i].flags)};
  }
  return result;
}

inline std::vector<GraphNode> ToStrata(const CUgraphNode* nodes,
                                       std::size_t count) {
  std::vector<GraphNode> result(count);
  for (std::size_t i = 0; i < count; ++i) result[i].value = nodes[i];
  return result;
}

// Edges of a simulated graph carry no data.
inline bool AreDefault(const CUgraphEdgeData* edges, std::size_t count) {
  return edges == nullptr ||
         std::all_of(edges, edges + count, [](const CUgraphEdgeData& edge) {
           return edge.from_port == 0 && edge.to_port == 0 && edge.type == 0 &&
                  AreZero(edge.reserved);
         });
}

// The argument of an import: a descriptor, or the address of 64 bytes.
inline Shareable ToShareable(ShareType type, const void* handle) {
  Shareable shareable;
  if (type == ShareType::kFabric) {
    const auto* bytes = static_cast<const std::uint8_t*>(handle);
    std::copy_n(bytes, shareable.fabric.size(), shareable.fabric.begin());
  } else {
    shareable.fd = static_cast<int>(reinterpret_cast<std::intptr_t>(handle));
  }
  return shareable;
}

// Writes the result of an export to `out`.
inline void PutShareable(ShareType type, const Shareable& shareable,
                         void* out) {
  if (type == ShareType::kFabric) {
    std::copy(shareable.fabric.begin(), shareable.fabric.end(),
              static_cast<std::uint8_t*>(out));
  } else {
    *static_cast<int*>(out) = shareable.fd;
  }
}

}  // namespace strata::simdriver

#endif  // STRATA_PLATFORM_SIMDRIVER_TYPES_H_
