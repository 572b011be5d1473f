#ifndef STRATA_ALLOCATION_STREAMS_CAPTURE_HOLD_H_
#define STRATA_ALLOCATION_STREAMS_CAPTURE_HOLD_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "strata/allocation/allocator.h"
#include "strata/platform/device.h"
#include "strata/platform/stream.h"

namespace strata {

// A holder of memory while graphs of a capture may use it.
//
// Threads: any thread.
class CaptureHold {
 public:
  CaptureHold() = default;
  CaptureHold(const CaptureHold&) = delete;
  CaptureHold& operator=(const CaptureHold&) = delete;
  virtual ~CaptureHold() = default;

  // Number that increases with each hold created. A hold passes memory only to
  // holds with a higher number, so that no hold waits for itself.
  virtual std::uint64_t order() const noexcept = 0;
  // Takes over a freed allocation. Calls DoFree() of `layer` after the last
  // graph is destroyed and its last launch has completed.
  virtual void Hold(std::shared_ptr<Allocator> layer,
                    Allocation* allocation) noexcept = 0;
};

// The captures in progress, for the layers of a chain.
//
// Threads: any thread.
class CaptureHolds {
 public:
  CaptureHolds() = default;
  CaptureHolds(const CaptureHolds&) = delete;
  CaptureHolds& operator=(const CaptureHolds&) = delete;
  virtual ~CaptureHolds() = default;

  // Adds the hold of the announced capture that `stream` takes part in, if any.
  // Adds the holds of all announced captures if the device call fails. Never
  // adds the hold with order() `own`. Device calls only while captures are
  // announced. With `may_be_gone`, the stream may have ended; then it takes
  // part in none.
  //
  // Errors: std::bad_alloc.
  virtual void AddHoldsOf(Device& device, const Stream& stream,
                          std::uint64_t own,
                          std::vector<std::shared_ptr<CaptureHold>>& holds,
                          bool may_be_gone) = 0;
};

}  // namespace strata

#endif  // STRATA_ALLOCATION_STREAMS_CAPTURE_HOLD_H_
