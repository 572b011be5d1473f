#ifndef STRATA_STRATEGY_STEP_WATCH_H_
#define STRATA_STRATEGY_STEP_WATCH_H_

#include <cstddef>
#include <cstdint>
#include <limits>

namespace strata {

// Notices that a program repeats itself: that its requests have the same sizes
// in the same order as one step before.
//
// Model: a step begins where the fewest blocks are live, as between two
//   iterations of training. Requests that meet so few, the floor, are where a
//   lap ends and the next begins; of a lap the number of requests and a hash of
//   their sizes are kept, and two alike in a row are a step that repeats. A
//   floor that is not met any more rises; one below it takes its place.
// Threads: none; the strategy's lock guards it.
// Cost: Note: a multiplication, and a comparison or two.
class StepWatch {
 public:
  // Shorter laps are taken together, and longer ones are not waited for: a plan
  // of them would not stay in a cache of 1 MiB.
  static constexpr std::uint32_t kFewestTakes = 64;
  static constexpr std::uint32_t kMostTakes = 16384;

  // A request of `bytes`, rounded, was served while `live` other blocks were.
  // If true, call Turn before the next one is noted.
  bool Note(std::size_t bytes, std::uint64_t live) noexcept {
    hash_ = (hash_ ^ bytes) * kMultiplier;
    ++takes_;
    const std::uint64_t above = floor_ + (takes_ >= fewest_takes_ ? 1 : 0);
    return live < above || takes_ >= window_;
  }
  // Whether a lap ended with that request which is like the one before it.
  bool Turn(std::uint64_t live) noexcept;

  // Of that lap.
  std::uint32_t lap_takes() const { return lap_takes_; }
  // Requests noted before this lap.
  std::uint64_t past_takes() const { return past_takes_; }
  std::uint64_t floor() const { return floor_; }

  // Looks away for so many requests, then for laps of at least `fewest_takes`,
  // or, if that is too long, of any length.
  void Pause(std::uint32_t takes, std::uint32_t fewest_takes) noexcept;

 private:
  static constexpr std::uint64_t kNoFloor = std::uint64_t{1} << 63;
  static constexpr std::uint64_t kMultiplier = 0x9e3779b97f4a7c15U;
  // So many laps that differ may be parts of a longer one.
  static constexpr int kTries = 8;
  // A floor is given up after so many requests; after twice as many next time.
  static constexpr std::uint32_t kFirstWindow = 1024;

  // A step may begin where `live` blocks are.
  void SetFloor(std::uint64_t live) noexcept;
  void StartLap() noexcept {
    past_takes_ += takes_;
    takes_ = 0;
    hash_ = 0;
  }
  void LookForLonger(std::uint32_t fewest_takes) noexcept;

  std::uint64_t hash_ = 0;  // of the requests since the lap began
  std::uint64_t floor_ = kNoFloor;
  std::uint32_t takes_ = 0;  // since the lap began
  std::uint32_t fewest_takes_ = kFewestTakes;
  std::uint32_t window_ = kFirstWindow;
  std::uint32_t lap_takes_ = 0;  // of the last lap; 0: there was none
  std::uint64_t lap_hash_ = 0;
  std::uint64_t past_takes_ = 0;
  std::uint32_t next_fewest_takes_ = kFewestTakes;  // after a pause
  bool is_paused_ = false;
  int tries_ = 0;  // laps in a row that differed
};

}  // namespace strata

#endif  // STRATA_STRATEGY_STEP_WATCH_H_
