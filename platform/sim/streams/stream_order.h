#ifndef STRATA_PLATFORM_SIM_STREAMS_STREAM_ORDER_H_
#define STRATA_PLATFORM_SIM_STREAMS_STREAM_ORDER_H_

#include <cstdint>

#include "strata/base/function_ref.h"
#include "strata/platform/stream.h"

namespace strata::sim {

// A point in a stream's work: the completion of its first `count` operations.
struct StreamPoint {
  std::int32_t device = -1;
  std::uint64_t stream_uid = 0;
  std::uint64_t count = 0;  // 0: reached at once

  friend bool operator==(const StreamPoint&, const StreamPoint&) = default;
};

// Returns true if the host has waited for the work up to a point.
using WaitedFor = FunctionRef<bool(const StreamPoint&)>;

// The known order of work in streams, for decisions at the time of a call.
// Memory pools use it.
//
// Model: happens-before among work on devices, by streams, events and the
//   legacy stream's rule (cuda_semantics.md §5.1 R1-R3, R7).
// Threads: externally synchronised.
class StreamOrder {
 public:
  StreamOrder() = default;
  StreamOrder(const StreamOrder&) = delete;
  StreamOrder& operator=(const StreamOrder&) = delete;
  virtual ~StreamOrder() = default;

  // The point at which all work submitted to `stream` so far is complete.
  virtual StreamPoint Last(const Stream& stream) const = 0;
  // True if work submitted to `stream` from now on starts after `point`.
  virtual bool IsBefore(const StreamPoint& point,
                        const Stream& stream) const = 0;
  // True if the work up to `point` is complete.
  virtual bool IsDone(const StreamPoint& point) const = 0;
  // Work submitted to `stream` from now on starts after `point`.
  virtual void Wait(const Stream& stream, const StreamPoint& point) = 0;
};

}  // namespace strata::sim

#endif  // STRATA_PLATFORM_SIM_STREAMS_STREAM_ORDER_H_
