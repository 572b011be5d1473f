#ifndef STRATA_FACADE_GRAPHS_CAPTURED_ALLOC_H_
#define STRATA_FACADE_GRAPHS_CAPTURED_ALLOC_H_

#include <memory>

#include "strata/allocation/failure.h"
#include "strata/allocation/reclaim/reclaimer.h"
#include "strata/allocation/request.h"
#include "strata/platform/stream.h"

namespace strata {

class Allocation;
class PlaceState;

// Memory for the requests of captures, as a place sees it.
//
// Threads: any thread.
class CapturedAlloc {
 public:
  CapturedAlloc() = default;
  CapturedAlloc(const CapturedAlloc&) = delete;
  CapturedAlloc& operator=(const CapturedAlloc&) = delete;

  // Serves the request at `place` from the pool of the capture that `stream`
  // takes part in. Sets `is_captured` to false, and returns null, if `stream`
  // takes part in no capture.
  virtual Allocation* TryAllocate(const std::shared_ptr<PlaceState>& place,
                                  const Stream& stream, const Request& request,
                                  Failure& failure,
                                  bool* is_captured) noexcept = 0;
  // The steps at exhaustion that end unused pools: at once, and after a wait
  // for the devices.
  virtual Reclaimer::Source& ask_step() = 0;
  virtual Reclaimer::Source& await_step() = 0;

 protected:
  ~CapturedAlloc() = default;
};

}  // namespace strata

#endif  // STRATA_FACADE_GRAPHS_CAPTURED_ALLOC_H_
