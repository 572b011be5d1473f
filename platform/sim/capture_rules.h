#ifndef STRATA_PLATFORM_SIM_CAPTURE_RULES_H_
#define STRATA_PLATFORM_SIM_CAPTURE_RULES_H_

#include <cstdint>

#include "strata/platform/device_call.h"
#include "strata/platform/status.h"

namespace strata {

// Which captures a call cannot go with.
enum class CaptureConflict : std::uint8_t {
  kNone,
  kDevice,
  kStream,
  kEvent,
  kSubmit,
  kAsk,
};

// Whether a call is potentially unsafe while something captures.
enum class CaptureUnsafe : std::uint8_t { kNever, kAlways, kOutside };

// A row of capture_rules.def, which explains it.
struct CaptureRule {
  DeviceCall call;
  CaptureConflict conflict;
  Status status;
  CaptureUnsafe unsafe;
  const char* source;
};

// The row of `call`, an entry point.
const CaptureRule& CaptureRuleOf(DeviceCall call);

}  // namespace strata

#endif  // STRATA_PLATFORM_SIM_CAPTURE_RULES_H_
