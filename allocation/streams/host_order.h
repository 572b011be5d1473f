#ifndef STRATA_ALLOCATION_STREAMS_HOST_ORDER_H_
#define STRATA_ALLOCATION_STREAMS_HOST_ORDER_H_

#include "strata/platform/device.h"

namespace strata {

// Host threads pass objects through locks that no observer of a device sees.
// These functions report such a transfer. So a checker of recorded calls knows
// which work a thread knows to be complete.
//
// Cost: one load if there is no observer. No driver call.

// Reports that the calling thread passes an object on. The next thread that
// acquires it knows all work that this thread knows to be complete.
inline void ReleaseHostOrder(Device& device) noexcept {
  if (device.observed()) device.Note(RecordOf(DeviceCall::kHostRelease));
}

// Reports that the calling thread acquired an object that another thread
// released.
inline void AcquireHostOrder(Device& device) noexcept {
  if (device.observed()) device.Note(RecordOf(DeviceCall::kHostAcquire));
}

}  // namespace strata

#endif  // STRATA_ALLOCATION_STREAMS_HOST_ORDER_H_
