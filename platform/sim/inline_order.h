#ifndef STRATA_PLATFORM_SIM_INLINE_ORDER_H_
#define STRATA_PLATFORM_SIM_INLINE_ORDER_H_

#include "strata/platform/sim/stream_order.h"
#include "strata/platform/stream.h"

namespace strata {

// The order of streams whose work is done when its call returns: nothing is
// ever pending, and the only dependencies are those within a stream.
class InlineOrder final : public StreamOrder {
 public:
  StreamPoint Last(const Stream& stream) const override {
    return {stream.device, stream.uid, 0};
  }
  bool IsBefore(const StreamPoint& point, const Stream& stream) const override {
    return point.device == stream.device && point.stream_uid == stream.uid;
  }
  bool IsDone(const StreamPoint&) const override { return true; }
  void Wait(const Stream&, const StreamPoint&) override {}
};

}  // namespace strata

#endif  // STRATA_PLATFORM_SIM_INLINE_ORDER_H_
