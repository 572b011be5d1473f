#include "strata/strategy/step_watch.h"

#include <algorithm>
#include <limits>

namespace strata {

bool StepWatch::Turn(std::uint64_t live) noexcept {
  if (is_paused_) {
    is_paused_ = false;
    window_ = kFirstWindow;
    LookForLonger(next_fewest_takes_);
    SetFloor(live);
    return false;
  }
  if (live != floor_) {
    // Lower than any, or so much is live for good.
    if (live > floor_) window_ = std::min(2 * window_, kMostTakes);
    SetFloor(live);
    return false;
  }
  if (takes_ == lap_takes_ && hash_ == lap_hash_) return true;
  lap_takes_ = takes_;
  lap_hash_ = hash_;
  StartLap();
  if (++tries_ == kTries) {
    tries_ = 0;
    LookForLonger(2 * fewest_takes_);
  }
  return false;
}

void StepWatch::SetFloor(std::uint64_t live) noexcept {
  floor_ = live;
  lap_takes_ = 0;
  tries_ = 0;
  StartLap();
}

void StepWatch::LookForLonger(std::uint32_t fewest_takes) noexcept {
  fewest_takes_ = fewest_takes <= kMostTakes / 2 ? fewest_takes : kFewestTakes;
  window_ = std::max(window_, std::min(4 * fewest_takes_, kMostTakes));
}

void StepWatch::Pause(std::uint32_t takes,
                      std::uint32_t fewest_takes) noexcept {
  SetFloor(0);
  is_paused_ = true;
  next_fewest_takes_ = fewest_takes;
  fewest_takes_ = std::numeric_limits<std::uint32_t>::max();
  window_ = takes;
}

}  // namespace strata
