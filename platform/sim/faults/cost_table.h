#ifndef STRATA_PLATFORM_SIM_FAULTS_COST_TABLE_H_
#define STRATA_PLATFORM_SIM_FAULTS_COST_TABLE_H_

#include <cstddef>
#include <cstdint>

#include "strata/platform/calls/device_call.h"

namespace strata::sim {

// The cost of one successful call on the simulated device's clock: fixed_ns +
// per_unit_ns for each `unit_bytes` begun, at most cap_ns.
struct CallCost {
  DeviceCall call;
  std::uint64_t fixed_ns;
  const char* source;  // source of the figures
  std::uint64_t per_unit_ns = 0;
  std::uint64_t unit_bytes = 0;  // 0: independent of the size
  std::uint64_t cap_ns = 0;      // 0: no cap
};

// The row of `call`, or null for an event.
const CallCost* FindCallCost(DeviceCall call);

// The cost of `call` for `bytes` bytes. For MemAlloc and MallocFromPoolAsync,
// `bytes` is the size of the frames that the call allocated from the device.
std::uint64_t CallCostNs(DeviceCall call, std::size_t bytes);

// Operations of a device in a stream.
enum class OperationKind { kCopyOnDevice, kCopyWithHost, kFill, kHostFunction };

// Time that the operation takes on the device for `bytes` bytes, under timed
// progress.
std::uint64_t OperationCostNs(OperationKind kind, std::size_t bytes);

}  // namespace strata::sim

#endif  // STRATA_PLATFORM_SIM_FAULTS_COST_TABLE_H_
