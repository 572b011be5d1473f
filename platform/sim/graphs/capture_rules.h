#ifndef STRATA_PLATFORM_SIM_GRAPHS_CAPTURE_RULES_H_
#define STRATA_PLATFORM_SIM_GRAPHS_CAPTURE_RULES_H_

#include <cstdint>

#include "strata/platform/calls/device_call.h"
#include "strata/platform/status.h"

namespace strata::sim {

// The captures that a call conflicts with (capture_rules.def).
enum class CaptureConflict : std::uint8_t {
  kNone,
  kDevice,
  kStream,
  kEvent,
  kSubmit,
  kAsk,
};

// Whether a call is potentially unsafe during a capture.
enum class CaptureUnsafe : std::uint8_t { kNever, kAlways, kOutside };

// A row of capture_rules.def, which explains the fields.
struct CaptureRule {
  DeviceCall call;
  CaptureConflict conflict;
  Status status;
  CaptureUnsafe unsafe;
  const char* source;
};

// The row of `call`, an entry point.
const CaptureRule& CaptureRuleOf(DeviceCall call);

}  // namespace strata::sim

#endif  // STRATA_PLATFORM_SIM_GRAPHS_CAPTURE_RULES_H_
