#ifndef STRATA_FACADE_CHAINS_CHAIN_HOME_H_
#define STRATA_FACADE_CHAINS_CHAIN_HOME_H_

#include "strata/allocation/failure.h"
#include "strata/allocation/request.h"
#include "strata/allocation/stats.h"
#include "strata/platform/stream.h"

namespace strata {

class Allocation;
class Chain;

// The place of a chain, as the chain sees it.
//
// Threads: any thread.
// Lifetime: outlives its chains, which share it.
class ChainHome {
 public:
  ChainHome() = default;
  ChainHome(const ChainHome&) = delete;
  ChainHome& operator=(const ChainHome&) = delete;
  virtual ~ChainHome() = default;

  // Serves the request from the pool of the capture that `stream` takes part
  // in, if `is_captured`.
  virtual Allocation* TryAllocateCaptured(const Stream& stream,
                                          const Request& request,
                                          Failure& failure,
                                          bool* is_captured) noexcept = 0;
  // Sets the bytes in use and cached at this place, unless host memory is
  // exhausted.
  virtual void Explain(Failure& failure) const noexcept = 0;
  // From here on `chain` is notified of the end of `stream`.
  virtual void HeedEnd(Chain& chain, Stream stream) noexcept = 0;
  // `chain` and its last allocation are gone; its totals remain.
  virtual void Finish(Chain& chain, const Stats& totals) = 0;
  // A chain has ended.
  virtual void ReleaseIfClosed() noexcept = 0;
};

}  // namespace strata

#endif  // STRATA_FACADE_CHAINS_CHAIN_HOME_H_
