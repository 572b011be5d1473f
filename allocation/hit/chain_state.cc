#include "strata/allocation/hit/chain_state.h"

namespace strata {

void ChainState::RaisePeaks() noexcept {
  lock.TakeIn();
  if (counts.in_use_bytes() > allowance_bytes) {
    return place_peak->Raise(*this);
  }
  counts.RaisePeak(allowance_bytes);
  lock.unlock();
}

}  // namespace strata
