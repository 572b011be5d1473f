#ifndef STRATA_TOOLS_FIT_H_
#define STRATA_TOOLS_FIT_H_

#include <cstdint>
#include <functional>
#include <optional>

#include "strata/facade/options.h"
#include "strata/tools/replay_passes.h"
#include "strata/tools/trace.h"

namespace strata {

// The smallest device that a trace fits on.
struct Fit {
  std::uint64_t capacity_bytes = 0;
  // Of the capacities tried above it, up to kFitMargin more, those that fail:
  // more memory does not help every strategy at every point.
  int failures_above = 0;
};

inline constexpr int kFitTries = 40;
inline constexpr double kFitMargin = 0.2;

// Searches by bisection, in frames of the simulated device, from `least_bytes`
// to `enough_bytes`, which the search raises if it is not; `fits` says whether
// a capacity is enough. Nothing if none is that a simulated device can have.
//
// Cost: about 60 calls of `fits`. Below 200 frames, where kFitTries steps up to
//   the margin would be less than a frame each, each frame is tried once.
std::optional<Fit> SearchFit(
    std::uint64_t least_bytes, std::uint64_t enough_bytes,
    const std::function<bool(std::uint64_t capacity_bytes)>& fits);

// The fit of a trace: every request of every pass is served. `progress` is
// called before each replay, with the number of those done.
//
// Errors: as Replay.
std::optional<Fit> FindFit(const Trace& trace, const Options& options,
                           std::uint64_t enough_bytes,
                           const std::function<void(int replays)>& progress,
                           const PassPlan& plan = {});

}  // namespace strata

#endif  // STRATA_TOOLS_FIT_H_
