#ifndef STRATA_STRATEGY_POOL_WAIT_ROUNDS_H_
#define STRATA_STRATEGY_POOL_WAIT_ROUNDS_H_

#include <algorithm>
#include <cstdint>

#include "strata/base/require_cxx20.h"

namespace strata {

// Records which free blocks a wait for all streams has covered. Covered blocks
// need no other wait before they are freed to the system.
//
// Model: a free stamps its block with the number of waits begun so far. A wait
//   covers the stamps below its own number. Stamps have 16 bits and wrap: an
//   old block may appear younger, never older, and is then waited for once
//   more.
// Threads: not thread-safe. The strategy's lock guards it, but is not held
//   during a wait.
// Cost: O(1). A free stores two bytes.
// Source: cuda_semantics.md M6.
class WaitRounds {
 public:
  using Stamp = std::uint16_t;

  // Stamp of a block that is freed now.
  Stamp now() const { return static_cast<Stamp>(begun_); }
  // Begins a wait; returns its number.
  std::uint64_t Begin() { return ++begun_; }
  // Ends a wait that succeeded.
  void End(std::uint64_t number) { ended_ = std::max(ended_, number); }
  // Whether a wait that succeeded began after the free.
  bool Covers(Stamp stamp) const {
    return static_cast<Stamp>(begun_ - stamp) > begun_ - ended_;
  }

 private:
  std::uint64_t begun_ = 0;
  std::uint64_t ended_ = 0;  // The latest wait that succeeded.
};

}  // namespace strata

#endif  // STRATA_STRATEGY_POOL_WAIT_ROUNDS_H_
