#ifndef STRATA_PLATFORM_SIM_SIM_CALL_H_
#define STRATA_PLATFORM_SIM_SIM_CALL_H_

#include <cstdint>
#include <functional>

#include "strata/platform/device_call.h"
#include "strata/platform/memory_types.h"
#include "strata/platform/status.h"

namespace strata {

// One call that reached a simulated device, as an observer sees it. Fields that
// the call has no use for are 0.
struct SimCall {
  DeviceCall call = DeviceCall::kMemGetInfo;
  // The address, handle or event the call acts on; for calls that make one, the
  // new one (0 if the call failed). For copies, the target.
  std::uint64_t ptr = 0;
  std::uint64_t bytes = 0;
  // The call's other operand: flags, the byte a memset writes, the source of a
  // copy, the peer's ordinal.
  std::uint64_t value = 0;
  std::uint64_t stream_uid = 0;
  Status status = Status::kSuccess;
};

using SimCallObserver = std::function<void(const SimCall&)>;

}  // namespace strata

#endif  // STRATA_PLATFORM_SIM_SIM_CALL_H_
