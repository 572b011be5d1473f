#ifndef STRATA_STRATEGY_STEP_WATCH_H_
#define STRATA_STRATEGY_STEP_WATCH_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "strata/platform/require_cxx20.h"

namespace strata {

// Notices that a program repeats itself: that its requests have the same sizes
// in the same order as one step before.
//
// Model: a step begins where the fewest blocks are live, as between two
//   iterations of training. Requests that meet so few, the floor, end a lap and
//   begin the next; of each of the last laps a hash is kept, of the number and
//   the sizes of its requests. The smallest period of that sequence, once it
//   was seen twice, is a step: one lap, or several that differ, as the parts of
//   an iteration whose gradients are summed up over smaller ones. A floor that
//   is not met any more rises; one below it takes its place.
// Threads: none; the strategy's lock guards it.
// Cost: Note: a multiplication, and two comparisons. Turn: O(1) while a period
//   goes on, else O(laps). 2 KiB.
class StepWatch {
 public:
  // Shorter laps are taken together; longer steps are none, because a plan of
  // them would not stay in a cache of 1 MiB.
  static constexpr std::uint32_t kFewestTakes = 64;
  static constexpr std::uint32_t kMostTakes = 16384;
  // In a step.
  static constexpr std::uint32_t kMostLaps = 64;

  // A request of `bytes`, rounded, was served while `live` other blocks were.
  // If true, call Turn before the next one is noted.
  bool Note(std::size_t bytes, std::uint64_t live) noexcept {
    hash_ = (hash_ ^ bytes) * kMultiplier;
    ++takes_;
    const std::uint64_t above = floor_ + (takes_ >= fewest_takes_ ? 1 : 0);
    return live < above || takes_ >= window_;
  }
  // Whether a step was seen twice, the second time up to that request.
  bool Turn(std::uint64_t live) noexcept;

  // Requests of that step.
  std::uint32_t step_takes() const { return step_takes_; }
  std::uint64_t floor() const { return floor_; }
  // Requests noted before this lap.
  std::uint64_t past_takes() const { return past_takes_; }

  // Looks away for so many requests. Then only steps of more than `longer_than`
  // are seen, or shorter ones that repeat `times` times.
  void Pause(std::uint32_t takes, std::uint32_t longer_than,
             std::uint64_t times) noexcept;

 private:
  static constexpr std::uint64_t kNoFloor = std::uint64_t{1} << 63;
  static constexpr std::uint64_t kMultiplier = 0x9e3779b97f4a7c15U;
  static constexpr std::uint32_t kNever =
      std::numeric_limits<std::uint32_t>::max();
  // A floor is given up after so many requests; after twice as many next time.
  static constexpr std::uint32_t kFirstWindow = 1024;
  static constexpr std::uint32_t kLaps = 2 * kMostLaps;

  // A step may begin where `live` blocks are.
  void SetFloor(std::uint64_t live) noexcept;
  void StartLap() noexcept;
  void AddLap() noexcept;
  // Of the smallest period of the last laps.
  void FindPeriod() noexcept;
  // The nth lap before the last one.
  std::uint32_t At(std::uint32_t nth) const {
    return (laps_ - 1 - nth) % kLaps;
  }
  std::uint32_t TakesOfPeriod() const noexcept;

  std::uint64_t hash_ = 0;  // of the requests since the lap began
  std::uint64_t floor_ = kNoFloor;
  std::uint32_t takes_ = 0;                    // since the lap began
  std::uint32_t fewest_takes_ = kFewestTakes;  // of a lap
  std::uint32_t window_ = kFirstWindow;
  std::uint32_t step_takes_ = 0;
  // The last laps since there is this floor, in a ring.
  std::array<std::uint64_t, kLaps> hashes_{};
  std::array<std::uint32_t, kLaps> lap_takes_{};
  std::uint32_t laps_ = 0;     // how many there were
  std::uint32_t period_ = 0;   // in laps; 0: none
  std::uint64_t repeats_ = 0;  // laps in a row that are as one period before
  std::uint32_t longer_than_ = 0;
  std::uint64_t times_ = 0;
  std::uint64_t past_takes_ = 0;
};

}  // namespace strata

#endif  // STRATA_STRATEGY_STEP_WATCH_H_
