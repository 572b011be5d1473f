#ifndef STRATA_PLATFORM_SIM_DEVICE_SIM_DEVICE_RUN_H_
#define STRATA_PLATFORM_SIM_DEVICE_SIM_DEVICE_RUN_H_

#include <utility>

#include "strata/platform/sim/device/sim_device.h"

namespace strata::sim {

// For the sources of SimDevice only. `body` acquires the locks it needs. No
// lock is held while the observers run, except HoldOrder's.
template <class Body>
Status SimDevice::Run(CallRecord call, Body body,
                      const std::size_t* charged_bytes,
                      std::int32_t stream_device) {
  Enter(call.call);
  const auto order = HoldOrder();
  call.status = Refusal(call, stream_device);
  if (call.status == Status::kSuccess) {
    call.status = body(&call);
    // "Not ready" is a result, which costs time too; a refusal costs none.
    if (call.status == Status::kSuccess || call.status == Status::kNotReady) {
      Charge(call.call, charged_bytes != nullptr
                            ? *charged_bytes
                            : static_cast<std::size_t>(call.bytes));
    }
  }
  Observe(call);
  return call.status;
}

// Captures do not check a stream of another device.
template <class Body>
Status SimDevice::Run(const Stream& stream, CallRecord call, Body body) {
  call.stream_uid = stream.uid;
  return Run(call, body, nullptr, stream.device == ordinal_ ? ordinal_ : -1);
}

template <class Work>
void SimDevice::Submit(const Stream& stream, std::uint64_t cost_ns, Work work,
                       SimLock* lock) {
  scheduler_.Submit(
      stream, cost_ns,
      [this, work = std::move(work)]() mutable {
        if (sticky_error() == Status::kSuccess) NoteOutcome(work());
      },
      lock);
}

}  // namespace strata::sim

#endif  // STRATA_PLATFORM_SIM_DEVICE_SIM_DEVICE_RUN_H_
