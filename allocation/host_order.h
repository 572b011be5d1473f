#ifndef STRATA_ALLOCATION_HOST_ORDER_H_
#define STRATA_ALLOCATION_HOST_ORDER_H_

#include "strata/platform/device.h"

namespace strata {

// What one thread of the host hands another goes through locks that no observer
// of a device sees: these say it, so that a checker of recorded calls knows
// what a thread knows to be done.
//
// Cost: a load without an observer. No driver call.

// Who takes something now knows what the calling thread knows to be done.
inline void ReleaseHostOrder(Device& device) noexcept {
  if (device.observed()) device.Note(RecordOf(DeviceCall::kHostRelease));
}

// The calling thread has taken something from whoever released.
inline void AcquireHostOrder(Device& device) noexcept {
  if (device.observed()) device.Note(RecordOf(DeviceCall::kHostAcquire));
}

}  // namespace strata

#endif  // STRATA_ALLOCATION_HOST_ORDER_H_
