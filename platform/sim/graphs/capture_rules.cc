#include "strata/platform/sim/graphs/capture_rules.h"

#include <cstddef>

namespace strata::sim {
namespace {

constexpr CaptureRule kRules[] = {
#define STRATA_CAPTURE_RULE(method, conflict, status, unsafe, source)   \
  {DeviceCall::k##method, CaptureConflict::k##conflict, Status::status, \
   CaptureUnsafe::k##unsafe, source},
#include "strata/platform/sim/graphs/capture_rules.def"
#undef STRATA_CAPTURE_RULE
};

// Checks that the rows are the entries of device_calls.def, in its order.
constexpr bool InOrder() {
  std::size_t next = 0;
  for (const CaptureRule& rule : kRules) {
    if (static_cast<std::size_t>(rule.call) != next++) return false;
  }
  return next == kDeviceCallCount;
}
static_assert(InOrder());

}  // namespace

const CaptureRule& CaptureRuleOf(DeviceCall call) {
  return kRules[static_cast<std::size_t>(call)];
}

}  // namespace strata::sim
