#include "strata/platform/sim/faults/cost_table.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <iterator>

namespace strata::sim {
namespace {

constexpr std::uint64_t kMebibyte = std::uint64_t{1} << 20;
constexpr std::uint64_t kNever = 0;  // no unit, or no cap
// Calls on ranges cost per mapping after the first, not per byte.
constexpr std::uint64_t kEach = 1;

constexpr const char* kH200 = "H200, docs/gpu/2026-11-26.md";

// "H200": medians of calls on an H200, driver 580.159. Other sources: public
// figures for other GPUs; "default": the values of cuda_semantics.md §1.4;
// "estimate": without a source, similar to its neighbours.
constexpr CallCost kCosts[] = {
    {DeviceCall::kMemGetInfo, 6'800, 0, kNever, kNever, kH200},
    {DeviceCall::kSynchronize, 2'300, 0, kNever, kNever,
     "as stream_synchronize"},
    {DeviceCall::kStreamCreate, 2'200, 0, kNever, kNever, kH200},
    {DeviceCall::kStreamDestroy, 2'200, 0, kNever, kNever, kH200},
    {DeviceCall::kWrapStream, 100, 0, kNever, kNever, "estimate"},
    {DeviceCall::kStreamSynchronize, 2'300, 0, kNever, kNever, "rmm#448"},
    {DeviceCall::kStreamQuery, 430, 0, kNever, kNever, "as event_query"},
    {DeviceCall::kStreamWaitEvent, 340, 0, kNever, kNever, kH200},
    {DeviceCall::kLaunchHostFunc, 1'000, 0, kNever, kNever, "estimate"},
    {DeviceCall::kEventCreate, 300, 0, kNever, kNever, kH200},
    {DeviceCall::kEventDestroy, 270, 0, kNever, kNever, kH200},
    {DeviceCall::kEventRecord, 420, 0, kNever, kNever, kH200},
    {DeviceCall::kEventQuery, 430, 0, kNever, kNever, kH200},
    {DeviceCall::kEventSynchronize, 570, 0, kNever, kNever,
     "H200, of an event that is done"},
    {DeviceCall::kMemAlloc, 44'000, 180, 2 * kMebibyte, kNever, kH200},
    {DeviceCall::kMemFree, 37'500, 0, kNever, kNever,
     "H200, 2 MiB on an idle device; 1 GiB takes 617'000"},
    {DeviceCall::kMallocHost, 5'200, 200'000, 2 * kMebibyte, 200'000'000,
     "rmm#448: least 5.2 us, large ones 200 ms; slope an estimate"},
    {DeviceCall::kFreeHost, 7'800, 0, kNever, kNever, "rmm#448, least"},
    {DeviceCall::kHostRegister, 5'200, 200'000, 2 * kMebibyte, 200'000'000,
     "as malloc_host"},
    {DeviceCall::kHostUnregister, 7'800, 0, kNever, kNever, "as free_host"},
    {DeviceCall::kMallocManaged, 44'000, 0, kNever, kNever,
     "as mem_alloc without frames"},
    {DeviceCall::kMemcpyAsync, 230, 0, kNever, kNever,
     "rmm#448, submission only"},
    {DeviceCall::kMemsetAsync, 240, 0, kNever, kNever,
     "rmm#448, submission only"},
    {DeviceCall::kPointerAttributes, 100, 0, kNever, kNever, "estimate"},
    {DeviceCall::kEnablePeerAccess, 100'000, 0, kNever, kNever, "estimate"},
    {DeviceCall::kCanAccessPeer, 100, 0, kNever, kNever, "estimate"},
    {DeviceCall::kStreamBeginCapture, 1'000, 0, kNever, kNever, "estimate"},
    {DeviceCall::kStreamBeginCaptureToGraph, 1'000, 0, kNever, kNever,
     "estimate"},
    {DeviceCall::kStreamEndCapture, 2'000, 0, kNever, kNever, "estimate"},
    {DeviceCall::kStreamIsCapturing, 50, 0, kNever, kNever, "estimate"},
    {DeviceCall::kStreamCaptureInfo, 100, 0, kNever, kNever, "estimate"},
    {DeviceCall::kStreamUpdateCaptureDependencies, 100, 0, kNever, kNever,
     "estimate"},
    {DeviceCall::kThreadExchangeCaptureMode, 20, 0, kNever, kNever, "estimate"},
    {DeviceCall::kGraphCreate, 500, 0, kNever, kNever, "estimate"},
    {DeviceCall::kGraphDestroy, 1'000, 0, kNever, kNever, "estimate"},
    {DeviceCall::kGraphNodePredecessors, 100, 0, kNever, kNever, "estimate"},
    {DeviceCall::kGraphInstantiate, 50'000, 0, kNever, kNever,
     "estimate; grows with the nodes on hardware"},
    {DeviceCall::kGraphExecDestroy, 5'000, 0, kNever, kNever, "estimate"},
    {DeviceCall::kGraphLaunch, 5'000, 0, kNever, kNever,
     "estimate, submission only"},
    {DeviceCall::kGraphExecUpdate, 20'000, 0, kNever, kNever, "estimate"},
    {DeviceCall::kGraphMemTrim, 1'000, 0, kNever, kNever, "estimate"},
    {DeviceCall::kGraphMemAttribute, 200, 0, kNever, kNever, "estimate"},
    {DeviceCall::kUserObjectCreate, 300, 0, kNever, kNever, "estimate"},
    {DeviceCall::kGraphRetainUserObject, 200, 0, kNever, kNever, "estimate"},
    {DeviceCall::kUserObjectRelease, 200, 0, kNever, kNever, "estimate"},
    {DeviceCall::kGranularity, 100, 0, kNever, kNever, "estimate"},
    {DeviceCall::kReserveRange, 900, 0, kNever, kNever, kH200},
    {DeviceCall::kFreeRange, 800, 0, kNever, kNever, kH200},
    {DeviceCall::kCreateMemory, 14'200, 0, kNever, kNever, kH200},
    {DeviceCall::kReleaseMemory, 14'000, 0, kNever, kNever, kH200},
    {DeviceCall::kMapRange, 1'200, 0, kNever, kNever, kH200},
    {DeviceCall::kUnmapRange, 18'900, 18'900, kEach, kNever,
     "H200; per mapping as the first: PyTorch#96995"},
    {DeviceCall::kSetAccess, 28'000, 2'000, kEach, kNever,
     "H200; per mapping: default"},
    {DeviceCall::kGetAccess, 500, 0, kNever, kNever, "estimate"},
    {DeviceCall::kExportMemory, 10'000, 0, kNever, kNever, "estimate"},
    {DeviceCall::kImportMemory, 14'200, 0, kNever, kNever, "as create_memory"},
    {DeviceCall::kRetainMemory, 500, 0, kNever, kNever, "estimate"},
    {DeviceCall::kDefaultMemPool, 100, 0, kNever, kNever, "estimate"},
    {DeviceCall::kPoolCreate, 20'000, 0, kNever, kNever, "estimate"},
    {DeviceCall::kPoolDestroy, 10'000, 0, kNever, kNever, "estimate"},
    {DeviceCall::kPoolTrimTo, 1'000, 0, kNever, kNever,
     "estimate, of a pool that keeps what it has"},
    {DeviceCall::kPoolSetAttribute, 200, 0, kNever, kNever, "estimate"},
    {DeviceCall::kPoolGetAttribute, 200, 0, kNever, kNever, "estimate"},
    {DeviceCall::kPoolSetAccess, 28'000, 0, kNever, kNever, "as set_access"},
    {DeviceCall::kMallocFromPoolAsync, 500, 3'500, 2 * kMebibyte, 135'000,
     "default of a hit; H200 for growth by 32 MiB, cap as mem_alloc of 1 GiB"},
    {DeviceCall::kFreeAsync, 1'150, 0, kNever, kNever, kH200},
    {DeviceCall::kPoolExport, 10'000, 0, kNever, kNever, "estimate"},
    {DeviceCall::kPoolImport, 10'000, 0, kNever, kNever, "estimate"},
};

// The row of each entry point, so that a call needs no search.
constexpr std::uint8_t kNoRow = 0xff;
static_assert(std::size(kCosts) < kNoRow);

constexpr std::array<std::uint8_t, kDeviceCallCount> MakeRows() {
  std::array<std::uint8_t, kDeviceCallCount> rows{};
  for (std::uint8_t& row : rows) row = kNoRow;
  for (std::size_t i = 0; i < std::size(kCosts); ++i) {
    rows[static_cast<std::size_t>(kCosts[i].call)] =
        static_cast<std::uint8_t>(i);
  }
  return rows;
}
constexpr std::array<std::uint8_t, kDeviceCallCount> kRows = MakeRows();

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
  if (!IsEntryPoint(call)) return nullptr;
  const std::uint8_t row = kRows[static_cast<std::size_t>(call)];
  return row == kNoRow ? nullptr : &kCosts[row];
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
