#ifndef STRATA_STRATEGY_BFC_GROWTH_PLAN_H_
#define STRATA_STRATEGY_BFC_GROWTH_PLAN_H_

#include <cstddef>
#include <cstdint>
#include <optional>

#include "strata/platform/require_cxx20.h"

namespace strata {

// What to do when the system refuses a region.
enum class BfcBackpedal : std::uint8_t {
  kAlways,  // ask for a tenth less, again and again
  kOnce,    // so at the first refusal only, as TensorFlow up to 2.3 did
};

// How large the regions of a BfcAllocator are.
//
// Model: the next region has the size of a hint, which doubles with each region
//   that did not have to raise it for a large request, and is cut to what the
//   limit leaves. The hint stays below four times the limit, so it cannot wrap
//   (tf_bfc.md W5). Without growth the first region takes the whole limit. What
//   is given back otherwise than for a larger region, which the original never
//   does, takes the hint back: else each time would double it once more.
// Units: bytes; sizes are multiples of 256, the limit need not be.
// Threads: none.
// Source: tf_bfc.md R15 to R19; the numbers are of its rules.
class BfcGrowthPlan {
 public:
  // Nothing can grow before this. The first region has `first_bytes`, or what
  // the limit leaves of it.
  void Start(std::size_t limit_bytes, std::size_t first_bytes);

  // What is left of the limit while `held` bytes are held. 0 rather than less
  // if the system gave more than it was asked for (W6).
  std::size_t Available(std::size_t held) const;
  // The size to ask the system for first, so that `needed` bytes fit; nothing
  // if the limit does not leave that much. Raises the hint to `needed`, for
  // good, as the original does.
  std::optional<std::size_t> FirstAsk(std::size_t needed, std::size_t held);
  // The system gave what FirstAsk said, or less.
  void Grown();
  // Regions went to the system, and `held` bytes are left: the hint falls to
  // what doubling would have made it by then.
  void GaveBack(std::size_t held);
  // The next smaller size to ask for. Smaller than `bytes`, which is not 0.
  static std::size_t Less(std::size_t bytes);

  std::size_t limit_bytes() const { return limit_bytes_; }
  std::size_t hint_bytes() const { return hint_bytes_; }

 private:
  std::size_t limit_bytes_ = 0;
  std::size_t first_bytes_ = 0;  // the first hint
  std::size_t hint_bytes_ = 0;   // the least size of the next region
  bool was_raised_ = false;      // by the last FirstAsk
};

}  // namespace strata

#endif  // STRATA_STRATEGY_BFC_GROWTH_PLAN_H_
