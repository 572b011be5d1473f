#ifndef STRATA_PLATFORM_MEMORY_TYPES_H_
#define STRATA_PLATFORM_MEMORY_TYPES_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "strata/platform/stream.h"

namespace strata {

// An address as the device sees it (CUdeviceptr).
using DevicePtr = std::uintptr_t;

using Graph = Handle<struct GraphTag>;
using GraphExec = Handle<struct GraphExecTag>;
using GraphNode = Handle<struct GraphNodeTag>;
using MemPool = Handle<struct MemPoolTag>;
using UserObject = Handle<struct UserObjectTag>;

// Physical memory that can be mapped (CUmemGenericAllocationHandle).
struct MemHandle {
  std::uint64_t value = 0;

  friend bool operator==(const MemHandle&, const MemHandle&) = default;
};

enum class CaptureMode : std::int32_t { kGlobal, kThreadLocal, kRelaxed };
// True if `mode` is an enumerator. A driver does not check this.
constexpr bool IsKnown(CaptureMode mode) {
  return mode >= CaptureMode::kGlobal && mode <= CaptureMode::kRelaxed;
}
enum class CaptureStatus : std::int32_t { kNone, kActive, kInvalidated };

struct CaptureInfo {
  CaptureStatus status = CaptureStatus::kNone;
  std::uint64_t id = 0;  // unique for the life of the process
  Graph graph;
  std::vector<GraphNode> dependencies;
};

// The device or host memory that owns or accesses physical memory; values as in
// CUmemLocationType.
struct Location {
  enum class Kind : std::int32_t { kDevice = 1, kHost = 2, kHostNuma = 3 };
  Kind kind = Kind::kDevice;
  std::int32_t id = 0;
};

enum class Access : std::int32_t { kNone = 0, kRead = 1, kReadWrite = 3 };

// True if `access` is an enumerator.
constexpr bool IsKnown(Access access) {
  return access == Access::kNone || access == Access::kRead ||
         access == Access::kReadWrite;
}

struct AccessDescriptor {
  Location location;
  Access access = Access::kReadWrite;
};

enum class ShareType : std::int32_t { kNone = 0, kPosixFd = 1, kFabric = 8 };

struct MemProperties {
  Location location;
  ShareType share = ShareType::kNone;
  bool rdma = false;
  bool compress = false;
};

// The form in which an exported handle travels: a file descriptor or 64 opaque
// bytes.
struct Shareable {
  int fd = -1;
  std::array<std::uint8_t, 64> fabric{};
};

enum class PoolAttribute : std::int32_t {
  kReuseFollowEventDependencies = 1,
  kReuseAllowOpportunistic,
  kReuseAllowInternalDependencies,
  kReleaseThreshold,
  kReservedCurrent,
  kReservedHigh,
  kUsedCurrent,
  kUsedHigh,
};

enum class GraphMemAttributeKind : std::int32_t {
  kUsedCurrent,
  kUsedHigh,
  kReservedCurrent,
  kReservedHigh,
};

// How a graph is instantiated; values as in CUDA.
enum GraphInstantiateFlags : unsigned {
  kGraphDefault = 0,
  // A launch first frees the allocations of earlier launches that are still
  // live.
  kGraphAutoFreeOnLaunch = 1,
  // Launches run each node with the priority of the node, not of the stream.
  // This is a hint; the simulated device accepts and ignores it.
  kGraphUseNodePriority = 8,
};

// The kind of memory behind a pointer; values as in cudaMemoryType.
enum class MemoryType : std::int32_t {
  kUnregistered = 0,
  kHost = 1,
  kDevice = 2,
  kManaged = 3,
};

struct PointerInfo {
  MemoryType type = MemoryType::kUnregistered;
  std::int32_t device = -1;
};

// The streams or host that may use new managed memory; values as in CUDA.
enum ManagedFlags : unsigned {
  kManagedGlobal = 1,  // any stream of any device
  kManagedHost = 2,    // the host, until it is attached to a stream
};

using HostFunction = void (*)(void*);

}  // namespace strata

#endif  // STRATA_PLATFORM_MEMORY_TYPES_H_
