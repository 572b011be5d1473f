#include "strata/strategy/bfc/growth_plan.h"

#include <algorithm>

#include "strata/base/size.h"
#include "strata/strategy/bfc/arena/geometry.h"

namespace strata {
namespace {

// Single precision, because later sizes depend on the rounding (R18).
constexpr float kLess = 0.9F;

}  // namespace

void BfcGrowthPlan::Start(std::size_t limit_bytes, std::size_t first_bytes) {
  limit_bytes_ = std::min(limit_bytes, kBfcMaxBytes);
  hint_bytes_ = AlignUp(std::min(limit_bytes_, first_bytes), kBfcGranuleBytes);
  // With a limit below one granule there is no region, but the hint must still
  // double.
  hint_bytes_ = std::max(hint_bytes_, kBfcGranuleBytes);
  first_bytes_ = hint_bytes_;
}

std::size_t BfcGrowthPlan::Available(std::size_t held) const {
  return (limit_bytes_ - std::min(limit_bytes_, held)) &
         ~(kBfcGranuleBytes - 1);
}

std::optional<std::size_t> BfcGrowthPlan::FirstAsk(std::size_t needed,
                                                   std::size_t held) {
  const std::size_t available = Available(held);  // R16
  if (needed > available) return std::nullopt;
  was_raised_ = false;
  while (needed > hint_bytes_) {  // R17
    hint_bytes_ *= 2;
    was_raised_ = true;
  }
  return std::min(hint_bytes_, available);
}

void BfcGrowthPlan::Grown() {  // R19
  // Beyond the limit a larger hint changes nothing.
  if (!was_raised_ && hint_bytes_ <= limit_bytes_) hint_bytes_ *= 2;
}

void BfcGrowthPlan::GaveBack(std::size_t held) {
  while (hint_bytes_ > first_bytes_ && hint_bytes_ - first_bytes_ > held) {
    hint_bytes_ /= 2;
  }
}

std::size_t BfcGrowthPlan::Less(std::size_t bytes) {  // R18
  const std::size_t less =
      AlignUp(static_cast<std::size_t>(static_cast<float>(bytes) * kLess),
              kBfcGranuleBytes);
  // Rounding up would never reduce small sizes (W4).
  return less < bytes ? less : bytes - kBfcGranuleBytes;
}

}  // namespace strata
