#ifndef STRATA_TOOLS_REPLAY_FIT_H_
#define STRATA_TOOLS_REPLAY_FIT_H_

#include <cstdint>
#include <functional>
#include <optional>

#include "strata/facade/options.h"
#include "strata/tools/replay/replay_passes.h"
#include "strata/tools/trace/trace.h"

namespace strata::tools {

// The smallest device that a trace fits on.
struct Fit {
  std::uint64_t capacity_bytes = 0;
  // Number of failures among the tested capacities above it, up to kFitMargin
  // more: some strategies fail at points with more memory.
  int failures_above = 0;
};

inline constexpr int kFitTries = 40;
inline constexpr double kFitMargin = 0.2;

// Searches by bisection, in frames of the simulated device, from `least_bytes`
// to `enough_bytes`. Raises `enough_bytes` if that capacity does not suffice.
// `fits` returns whether a capacity suffices. Returns nothing if no possible
// capacity of a simulated device does.
//
// Cost: about 60 calls of `fits`. Below 200 frames, where kFitTries steps up to
//   the margin would be less than a frame each, each frame is tried once.
std::optional<Fit> SearchFit(
    std::uint64_t least_bytes, std::uint64_t enough_bytes,
    const std::function<bool(std::uint64_t capacity_bytes)>& fits);

// The fit of a trace: the capacity serves every request of every pass. Calls
// `progress` before each replay, with the number of completed replays.
//
// Errors: as Replay.
std::optional<Fit> FindFit(const Trace& trace, const Options& options,
                           std::uint64_t enough_bytes,
                           const std::function<void(int replays)>& progress,
                           const PassPlan& plan = {});

}  // namespace strata::tools

#endif  // STRATA_TOOLS_REPLAY_FIT_H_
