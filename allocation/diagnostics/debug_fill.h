#ifndef STRATA_ALLOCATION_DIAGNOSTICS_DEBUG_FILL_H_
#define STRATA_ALLOCATION_DIAGNOSTICS_DEBUG_FILL_H_

#include <optional>

#include "strata/allocation/allocation.h"
#include "strata/allocation/streams/capture_gate.h"
#include "strata/platform/device.h"
#include "strata/platform/stream.h"

namespace strata {

// A debug action on every new allocation: fill it with a byte, wait for the
// device, or both.
//
// Model: runs once per allocation, in the order of its stream, so that it
//   neither hides nor causes a race. The CPU fills host memory. While a capture
//   is announced, memory of the legacy stream is not filled, and no wait takes
//   place: both could end the capture.
// Threads: any thread.
class DebugFill {
 public:
  // `device` is null for a host place. It must outlive this object. `value` is
  // the byte to write, if any.
  DebugFill(Device* device, std::optional<unsigned char> value, bool sync,
            const CaptureGate* gate = nullptr);

  // Returns the status of the first device call that failed.
  Status Apply(Allocation& allocation, Stream stream) const noexcept;

 private:
  Device* device_;
  std::optional<unsigned char> value_;
  bool sync_;  // wait for the whole device after the fill
  const CaptureGate* gate_;
};

}  // namespace strata

#endif  // STRATA_ALLOCATION_DIAGNOSTICS_DEBUG_FILL_H_
