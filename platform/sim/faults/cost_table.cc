#include "strata/platform/sim/faults/cost_table.h"

#include <algorithm>
#include <cstdint>

namespace strata::sim {
namespace {

using enum DeviceCall;

constexpr std::uint64_t kMebibyte = std::uint64_t{1} << 20;
// Calls on ranges cost per mapping after the first, not per byte.
constexpr std::uint64_t kEach = 1;

constexpr const char* kH200 = "H200, docs/gpu/2026-11-26.md";

// "H200": medians of calls on an H200, driver 580.159. Other sources: public
// figures for other GPUs; "default": the values of cuda_semantics.md §1.4;
// "estimate": without a source, similar to its neighbours.
constexpr CallCost kCosts[] = {
    {kMemGetInfo, 6'800, kH200},
    {kSynchronize, 2'300, "as stream_synchronize"},
    {kStreamCreate, 2'200, kH200},
    {kStreamDestroy, 2'200, kH200},
    {kWrapStream, 100, "estimate"},
    {kStreamSynchronize, 2'300, "rmm#448"},
    {kStreamQuery, 430, "as event_query"},
    {kStreamWaitEvent, 340, kH200},
    {kLaunchHostFunc, 1'000, "estimate"},
    {kEventCreate, 300, kH200},
    {kEventDestroy, 270, kH200},
    {kEventRecord, 420, kH200},
    {kEventQuery, 430, kH200},
    {kEventSynchronize, 570, "H200, of an event that is done"},
    {kMemAlloc, 44'000, kH200, 180, 2 * kMebibyte},
    {kMemFree, 37'500, "H200, 2 MiB on an idle device; 1 GiB takes 617'000"},
    {kMallocHost, 5'200,
     "rmm#448: least 5.2 us, large ones 200 ms; slope an estimate", 200'000,
     2 * kMebibyte, 200'000'000},
    {kFreeHost, 7'800, "rmm#448, least"},
    {kHostRegister, 5'200, "as malloc_host", 200'000, 2 * kMebibyte,
     200'000'000},
    {kHostUnregister, 7'800, "as free_host"},
    {kMallocManaged, 44'000, "as mem_alloc without frames"},
    {kMemcpyAsync, 230, "rmm#448, submission only"},
    {kMemsetAsync, 240, "rmm#448, submission only"},
    {kPointerAttributes, 100, "estimate"},
    {kEnablePeerAccess, 100'000, "estimate"},
    {kCanAccessPeer, 100, "estimate"},
    {kDefaultMemPool, 100, "estimate"},
    {kPoolCreate, 20'000, "estimate"},
    {kPoolDestroy, 10'000, "estimate"},
    {kPoolTrimTo, 1'000, "estimate, of a pool that keeps what it has"},
    {kPoolSetAttribute, 200, "estimate"},
    {kPoolGetAttribute, 200, "estimate"},
    {kPoolSetAccess, 28'000, "as set_access"},
    {kMallocFromPoolAsync, 500,
     "default of a hit; H200 for growth by 32 MiB, cap as mem_alloc of 1 GiB",
     3'500, 2 * kMebibyte, 135'000},
    {kFreeAsync, 1'150, kH200},
    {kPoolExport, 10'000, "estimate"},
    {kPoolImport, 10'000, "estimate"},
    {kGranularity, 100, "estimate"},
    {kReserveRange, 900, kH200},
    {kFreeRange, 800, kH200},
    {kCreateMemory, 14'200, kH200},
    {kReleaseMemory, 14'000, kH200},
    {kMapRange, 1'200, kH200},
    {kUnmapRange, 18'900, "H200; per mapping as the first: PyTorch#96995",
     18'900, kEach},
    {kSetAccess, 28'000, "H200; per mapping: default", 2'000, kEach},
    {kGetAccess, 500, "estimate"},
    {kExportMemory, 10'000, "estimate"},
    {kImportMemory, 14'200, "as create_memory"},
    {kRetainMemory, 500, "estimate"},
    {kStreamBeginCapture, 1'000, "estimate"},
    {kStreamBeginCaptureToGraph, 1'000, "estimate"},
    {kStreamEndCapture, 2'000, "estimate"},
    {kStreamIsCapturing, 50, "estimate"},
    {kStreamCaptureInfo, 100, "estimate"},
    {kStreamUpdateCaptureDependencies, 100, "estimate"},
    {kThreadExchangeCaptureMode, 20, "estimate"},
    {kGraphCreate, 500, "estimate"},
    {kGraphDestroy, 1'000, "estimate"},
    {kGraphNodePredecessors, 100, "estimate"},
    {kGraphInstantiate, 50'000, "estimate; grows with the nodes on hardware"},
    {kGraphExecDestroy, 5'000, "estimate"},
    {kGraphLaunch, 5'000, "estimate, submission only"},
    {kGraphExecUpdate, 20'000, "estimate"},
    {kGraphMemTrim, 1'000, "estimate"},
    {kGraphMemAttribute, 200, "estimate"},
    {kUserObjectCreate, 300, "estimate"},
    {kGraphRetainUserObject, 200, "estimate"},
    {kUserObjectRelease, 200, "estimate"},
};
static_assert(AreEntryPoints(kCosts));

// A fixed part, and a rate: n bytes per nanosecond are n * 10^9 bytes per
// second.
struct OperationCost {
  std::uint64_t fixed_ns;
  std::uint64_t bytes_per_ns;  // 0: independent of the size
};

// Estimates of the order given in data sheets.
constexpr OperationCost CostOf(OperationKind kind) {
  switch (kind) {
    case OperationKind::kCopyOnDevice:
      return {2'000, 1'000};  // each byte is read and written at 2 TB/s
    case OperationKind::kCopyWithHost:
      return {8'000, 25};  // PCIe 4.0 x16
    case OperationKind::kFill:
      return {2'000, 2'000};
    case OperationKind::kHostFunction:
      return {10'000, 0};  // wakes a thread of the driver
  }
  return {};
}

}  // namespace

std::uint64_t OperationCostNs(OperationKind kind, std::size_t bytes) {
  const OperationCost cost = CostOf(kind);
  if (cost.bytes_per_ns == 0) return cost.fixed_ns;
  return cost.fixed_ns + bytes / cost.bytes_per_ns;
}

const CallCost* FindCallCost(DeviceCall call) {
  return IsEntryPoint(call) ? &kCosts[static_cast<std::size_t>(call)] : nullptr;
}

std::uint64_t CallCostNs(DeviceCall call, std::size_t bytes) {
  const CallCost* cost = FindCallCost(call);
  if (cost == nullptr) return 0;
  std::uint64_t ns = cost->fixed_ns;
  if (cost->unit_bytes != 0) {
    const std::uint64_t units =
        bytes / cost->unit_bytes + (bytes % cost->unit_bytes != 0 ? 1 : 0);
    // More units than this reach any cap; the limit prevents overflow.
    constexpr std::uint64_t kMostUnits = std::uint64_t{1} << 40;
    ns += std::min(units, kMostUnits) * cost->per_unit_ns;
  }
  return cost->cap_ns == 0 ? ns : std::min(ns, cost->cap_ns);
}

}  // namespace strata::sim
