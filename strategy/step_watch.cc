#include "strata/strategy/step_watch.h"

#include <algorithm>

namespace strata {

bool StepWatch::Turn(std::uint64_t live) noexcept {
  if (fewest_takes_ == kNever) {  // the pause is over
    fewest_takes_ = kFewestTakes;
    window_ = kFirstWindow;
    SetFloor(live);
    return false;
  }
  if (live != floor_) {
    // Lower than any, or so much is live for good.
    if (live > floor_) window_ = std::min(2 * window_, kMostTakes);
    SetFloor(live);
    return false;
  }
  AddLap();
  if (period_ == 0 || repeats_ < period_) return false;
  step_takes_ = TakesOfPeriod();
  return step_takes_ <= kMostTakes &&
         (step_takes_ > longer_than_ || repeats_ / period_ >= times_);
}

void StepWatch::SetFloor(std::uint64_t live) noexcept {
  floor_ = live;
  laps_ = 0;
  period_ = 0;
  repeats_ = 0;
  StartLap();
}

void StepWatch::StartLap() noexcept {
  past_takes_ += takes_;
  takes_ = 0;
  hash_ = 0;
}

void StepWatch::AddLap() noexcept {
  // The number, too: a hash may be the same after requests of some sizes more.
  ++laps_;
  hashes_[At(0)] = hash_ + takes_;
  lap_takes_[At(0)] = takes_;
  StartLap();
  if (period_ != 0 && hashes_[At(0)] == hashes_[At(period_)]) {
    ++repeats_;
  } else {
    FindPeriod();
  }
}

void StepWatch::FindPeriod() noexcept {
  const std::uint32_t known = std::min(laps_, kLaps);
  for (period_ = 1; period_ <= kMostLaps && period_ < known; ++period_) {
    std::uint32_t nth = 0;
    while (nth + period_ < known &&
           hashes_[At(nth)] == hashes_[At(nth + period_)]) {
      ++nth;
    }
    repeats_ = nth;
    if (nth != 0) return;
  }
  period_ = 0;
}

std::uint32_t StepWatch::TakesOfPeriod() const noexcept {
  std::uint32_t takes = 0;
  for (std::uint32_t nth = 0; nth < period_; ++nth) {
    takes += lap_takes_[At(nth)];
  }
  return takes;
}

void StepWatch::Pause(std::uint32_t takes, std::uint32_t longer_than,
                      std::uint64_t times) noexcept {
  SetFloor(0);
  fewest_takes_ = kNever;
  window_ = takes;
  longer_than_ = longer_than;
  times_ = times;
}

}  // namespace strata
