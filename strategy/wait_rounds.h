#ifndef STRATA_STRATEGY_WAIT_ROUNDS_H_
#define STRATA_STRATEGY_WAIT_ROUNDS_H_

#include <algorithm>
#include <cstdint>

#include "strata/platform/require_cxx20.h"

namespace strata {

// Which free blocks a wait for all streams has covered, so that those that were
// free when it began need no other before the system gets them.
//
// Model: a block gets the stamp of its free, the number of waits begun by then.
//   A wait covers the stamps below its own number. Stamps have 16 bits: a block
//   free for more waits than that may be taken for a later one, never for an
//   earlier one, and is then waited for once more.
// Threads: none; the strategy's lock guards it, but is not held during a wait.
// Cost: O(1). A free stores two bytes.
// Source: cuda_semantics.md M6.
class WaitRounds {
 public:
  using Stamp = std::uint16_t;

  // Of what is freed now.
  Stamp now() const { return static_cast<Stamp>(begun_); }
  // A wait begins; its number.
  std::uint64_t Begin() { return ++begun_; }
  // It has ended well.
  void End(std::uint64_t number) { ended_ = std::max(ended_, number); }
  // Whether a wait that ended well began after the free.
  bool Covers(Stamp stamp) const {
    return static_cast<Stamp>(begun_ - stamp) > begun_ - ended_;
  }

 private:
  std::uint64_t begun_ = 0;
  std::uint64_t ended_ = 0;  // the latest that ended well
};

}  // namespace strata

#endif  // STRATA_STRATEGY_WAIT_ROUNDS_H_
