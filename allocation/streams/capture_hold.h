#ifndef STRATA_ALLOCATION_STREAMS_CAPTURE_HOLD_H_
#define STRATA_ALLOCATION_STREAMS_CAPTURE_HOLD_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "strata/allocation/allocator.h"
#include "strata/platform/device.h"
#include "strata/platform/stream.h"

namespace strata {

// Who keeps memory for as long as graphs of a capture may use it.
//
// Threads: any thread.
class CaptureHold {
 public:
  CaptureHold() = default;
  CaptureHold(const CaptureHold&) = delete;
  CaptureHold& operator=(const CaptureHold&) = delete;
  virtual ~CaptureHold() = default;

  // Rises with creation: holds that keep things for each other do so in this
  // order, so that none waits for itself.
  virtual std::uint64_t order() const noexcept = 0;
  // Takes over a freed allocation: calls DoFree of `layer` when the last graph
  // and its last launch are gone.
  virtual void Keep(std::shared_ptr<Allocator> layer,
                    Allocation* allocation) noexcept = 0;
};

// Which captures are under way, as the layers of a chain ask.
//
// Threads: any thread.
class CaptureHolds {
 public:
  CaptureHolds() = default;
  CaptureHolds(const CaptureHolds&) = delete;
  CaptureHolds& operator=(const CaptureHolds&) = delete;
  virtual ~CaptureHolds() = default;

  // Adds the hold of the announced capture that `stream` takes part in, if it
  // does; those of all announced captures if the device cannot tell; but not
  // the one whose order() is `own`. Device calls only while captures are
  // announced. With `may_be_gone` the stream may have ended: then it takes part
  // in none.
  //
  // Errors: std::bad_alloc.
  virtual void AddHoldsOf(Device& device, const Stream& stream,
                          std::uint64_t own,
                          std::vector<std::shared_ptr<CaptureHold>>& holds,
                          bool may_be_gone) = 0;
};

}  // namespace strata

#endif  // STRATA_ALLOCATION_STREAMS_CAPTURE_HOLD_H_
