#ifndef STRATA_PLATFORM_CALLS_CALL_RECORD_H_
#define STRATA_PLATFORM_CALLS_CALL_RECORD_H_

#include <cstdint>
#include <functional>

#include "strata/platform/calls/device_call.h"
#include "strata/platform/memory_types.h"
#include "strata/platform/status.h"

namespace strata {

// One call that reached a device, or an event beside the calls
// (device_events.def), as an observer sees it. Unused fields are 0.
struct CallRecord {
  DeviceCall call = DeviceCall::kMemGetInfo;
  std::int32_t device = 0;
  // The address, handle or event that the call acts on. For calls that create
  // one: the new one (0 if the call failed). For copies: the target.
  std::uint64_t ptr = 0;
  std::uint64_t bytes = 0;
  // The call's other operand: flags, the byte a memset writes, the source of a
  // copy, the peer's ordinal, the handle that is mapped, the pool.
  std::uint64_t value = 0;
  std::uint64_t stream_uid = 0;
  // The node that the call became, if its stream was capturing and the device
  // reports nodes.
  std::uint64_t node = 0;
  Status status = Status::kSuccess;
  // The time at which the call returned, on the device's clock. The clock is
  // virtual for a simulated device, else it counts from an arbitrary origin.
  std::uint64_t time_ns = 0;
  // Number of the calling thread; small, unique for the life of the process.
  std::uint64_t thread = 0;
};

// Returns a record of `call`; the caller fills in the remaining fields.
inline CallRecord RecordOf(DeviceCall call, std::uint64_t ptr = 0,
                           std::uint64_t bytes = 0, std::uint64_t value = 0) {
  CallRecord record;
  record.call = call;
  record.ptr = ptr;
  record.bytes = bytes;
  record.value = value;
  return record;
}

using CallObserver = std::function<void(const CallRecord&)>;

// The calling thread's number in a CallRecord.
std::uint64_t CallingThreadNumber();

}  // namespace strata

#endif  // STRATA_PLATFORM_CALLS_CALL_RECORD_H_
