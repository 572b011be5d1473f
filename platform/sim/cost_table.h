#ifndef STRATA_PLATFORM_SIM_COST_TABLE_H_
#define STRATA_PLATFORM_SIM_COST_TABLE_H_

#include <cstddef>
#include <cstdint>

#include "strata/platform/device_call.h"

namespace strata {

// What one successful call costs on the simulated device's clock:
// fixed_ns + per_unit_ns for each `unit_bytes` begun, at most cap_ns.
struct CallCost {
  DeviceCall call;
  std::uint64_t fixed_ns;
  std::uint64_t per_unit_ns;
  std::uint64_t unit_bytes;  // 0: the size does not matter
  std::uint64_t cap_ns;      // 0: no cap
  const char* source;        // where the figures come from
};

// The row of `call`, or null if the call is free of charge.
const CallCost* FindCallCost(DeviceCall call);

// What `call` costs for `bytes` bytes. For MemAlloc and
// MallocFromPoolAsync these are the bytes of the frames that the call took from
// the device.
std::uint64_t CallCostNs(DeviceCall call, std::size_t bytes);

// What a device does in a stream.
enum class OperationKind { kCopyOnDevice, kCopyWithHost, kFill, kHostFunction };

// How long that takes the device, for `bytes` bytes, under timed progress.
std::uint64_t OperationCostNs(OperationKind kind, std::size_t bytes);

}  // namespace strata

#endif  // STRATA_PLATFORM_SIM_COST_TABLE_H_
