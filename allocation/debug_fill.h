#ifndef STRATA_ALLOCATION_DEBUG_FILL_H_
#define STRATA_ALLOCATION_DEBUG_FILL_H_

#include <optional>

#include "strata/allocation/allocation.h"
#include "strata/allocation/streams/capture_gate.h"
#include "strata/platform/device.h"
#include "strata/platform/stream.h"

namespace strata {

// What to do with every new allocation while hunting a bug: fill it with a
// byte, wait for the device, or both.
//
// Model: once per allocation, in the order of the allocation's stream, so that
//   it neither hides nor causes a race. Host memory is filled by the CPU. While
//   a capture is announced, what the legacy stream gets stays as it is, and
//   nobody waits: both could end the capture.
// Threads: any thread.
class DebugFill {
 public:
  // `device` is null for a host place and outlives this object. `value` is the
  // byte to write, if any.
  DebugFill(Device* device, std::optional<unsigned char> value, bool sync,
            const CaptureGate* gate = nullptr);

  // Returns what the first failing device call returned.
  Status Apply(Allocation& allocation, Stream stream) const noexcept;

 private:
  Device* device_;
  std::optional<unsigned char> value_;
  bool sync_;  // wait for the whole device after the fill
  const CaptureGate* gate_;
};

}  // namespace strata

#endif  // STRATA_ALLOCATION_DEBUG_FILL_H_
