#ifndef STRATA_PLATFORM_SIM_STREAM_ORDER_H_
#define STRATA_PLATFORM_SIM_STREAM_ORDER_H_

#include <cstdint>

#include "strata/platform/function_ref.h"
#include "strata/platform/stream.h"

namespace strata {

// A moment in a stream's work: when its first `count` pieces are done.
struct StreamPoint {
  std::int32_t device = -1;
  std::uint64_t stream_uid = 0;
  std::uint64_t count = 0;  // 0: at once

  friend bool operator==(const StreamPoint&, const StreamPoint&) = default;
};

// Whether the host has waited for the work up to a point.
using WaitedFor = FunctionRef<bool(const StreamPoint&)>;

// What is known about the order of work in streams, for who has to decide on it
// when a call is made: memory pools.
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

  // When all that was submitted to `stream` so far is done.
  virtual StreamPoint Last(const Stream& stream) const = 0;
  // Whether what is submitted to `stream` from now on starts after `point`.
  virtual bool IsBefore(const StreamPoint& point,
                        const Stream& stream) const = 0;
  // Whether the work up to `point` is done.
  virtual bool IsDone(const StreamPoint& point) const = 0;
  // Makes what is submitted to `stream` from now on start after `point`.
  virtual void Wait(const Stream& stream, const StreamPoint& point) = 0;
};

}  // namespace strata

#endif  // STRATA_PLATFORM_SIM_STREAM_ORDER_H_
