#ifndef STRATA_TOOLS_BENCH_PLAYER_H_
#define STRATA_TOOLS_BENCH_PLAYER_H_

#include <glog/logging.h>

#include <algorithm>
#include <cstddef>
#include <exception>
#include <vector>

#include "strata/tools/bench/workloads/script.h"

namespace strata::tools {

// Frees the block of `slot` in a context that must not throw, such as a
// destructor. Logs the first error. Later errors add nothing.
template <class Lane, class Slot>
void FreeAtEnd(Lane& lane, Slot& slot) noexcept {
  try {
    lane.Free(slot);
  } catch (const std::exception& error) {
    LOG_FIRST_N(ERROR, 1) << error.what();
  }
}

// Plays a script for one thread, on a lane of a heap (heaps.h). A template, so
// that every heap is called as its users call it.
//
// Model: the constructor plays the prologue. Play continues the loop where it
//   stopped. The destructor frees all blocks. If there are more slots than the
//   nearest cache holds, steps and slots are prefetched: then a measured call
//   waits for the allocator's memory, not for the script's.
// Lifetime: script and heap outlive it.
template <class Heap>
class BenchPlayer {
 public:
  BenchPlayer(const BenchScript& script, typename Heap::Lane lane)
      : script_(script), lane_(lane), slots_(script.slots) {
    try {
      Follow(script_.prologue.data(), script_.prologue.size());
    } catch (...) {
      FreeAll();
      throw;
    }
  }
  BenchPlayer(const BenchPlayer&) = delete;
  BenchPlayer& operator=(const BenchPlayer&) = delete;
  ~BenchPlayer() { FreeAll(); }

  // Plays `pairs` allocations, and as many frees. In a loop that is not uniform
  // and ends in the middle, it plays the frees before the next allocation.
  //
  // Errors: the exceptions of the lane; then the player is unusable.
  void Play(std::size_t pairs) {
    const bool is_near = slots_.size() <= kNearSlots;
    std::size_t left = StepsOf(pairs);
    while (left != 0) {
      const std::size_t steps = std::min(left, script_.loop.size() - next_);
      const BenchStep* const step = script_.loop.data() + next_;
      is_near ? Follow(step, steps) : FollowFar(step, steps);
      left -= steps;
      next_ += steps;
      if (next_ == script_.loop.size()) next_ = 0;
    }
  }

 private:
  // 32 KiB of pointers.
  static constexpr std::size_t kNearSlots = 4096;
  // Slots are prefetched some hundred nanoseconds before their use. Steps are
  // prefetched earlier, because they name the slots.
  static constexpr std::ptrdiff_t kSlotsAhead = 16;
  static constexpr std::ptrdiff_t kStepsAhead = 64;

  std::size_t StepsOf(std::size_t pairs) const {
    const std::size_t rest = pairs % script_.pairs();
    if (script_.is_uniform || rest == 0) return 2 * pairs;
    std::size_t steps = 2 * (pairs - rest);
    std::size_t at = next_;
    for (std::size_t allocations = 0; allocations != rest; ++steps) {
      if (script_.loop[at].bytes != 0) ++allocations;
      if (++at == script_.loop.size()) at = 0;
    }
    return steps;
  }
  void Take(const BenchStep& step) {
    if (step.bytes != 0) {
      lane_.Allocate(slots_[step.slot], step.bytes);
    } else {
      lane_.Free(slots_[step.slot]);
    }
  }
  void Follow(const BenchStep* step, std::size_t count) {
    for (const BenchStep* const end = step + count; step != end; ++step) {
      Take(*step);
    }
  }
  void FollowFar(const BenchStep* step, std::size_t count) {
    for (const BenchStep* const end = step + count; step != end; ++step) {
      const std::ptrdiff_t last = end - step - 1;
      __builtin_prefetch(step + std::min(kStepsAhead, last));
      __builtin_prefetch(&slots_[step[std::min(kSlotsAhead, last)].slot]);
      Take(*step);
    }
  }
  void FreeAll() {
    for (typename Heap::Slot& slot : slots_) FreeAtEnd(lane_, slot);
  }

  const BenchScript& script_;
  typename Heap::Lane lane_;
  std::vector<typename Heap::Slot> slots_;
  std::size_t next_ = 0;  // index into the loop
};

}  // namespace strata::tools

#endif  // STRATA_TOOLS_BENCH_PLAYER_H_
