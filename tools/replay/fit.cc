#include "strata/tools/replay/fit.h"

#include <algorithm>
#include <cmath>

#include "strata/platform/sim/memory/device_memory.h"
#include "strata/platform/sim/memory/frame_table.h"
#include "strata/tools/replay/recordings.h"
#include "strata/tools/replay/replay.h"

namespace strata::tools {
namespace {

constexpr std::uint64_t kMaxFrames =
    sim::kMaxDeviceMemoryBytes / sim::kFrameBytes;

std::uint64_t FramesFor(std::uint64_t bytes) {
  return std::max<std::uint64_t>(
      1, bytes / sim::kFrameBytes + (bytes % sim::kFrameBytes != 0 ? 1 : 0));
}

int CountFailuresAbove(std::uint64_t fit,
                       const std::function<bool(std::uint64_t)>& fits) {
  int failures = 0;
  std::uint64_t last = fit;
  for (int i = 1; i <= kFitTries; ++i) {
    const double more = static_cast<double>(fit) * kFitMargin * i / kFitTries;
    const std::uint64_t frames =
        fit + static_cast<std::uint64_t>(std::ceil(more));
    if (frames == last || frames > kMaxFrames) continue;
    last = frames;
    if (!fits(frames * sim::kFrameBytes)) ++failures;
  }
  return failures;
}

}  // namespace

std::optional<Fit> SearchFit(std::uint64_t least_bytes,
                             std::uint64_t enough_bytes,
                             const std::function<bool(std::uint64_t)>& fits) {
  std::uint64_t low = FramesFor(least_bytes);
  std::uint64_t high = std::max(low, FramesFor(enough_bytes));
  while (high <= kMaxFrames && !fits(high * sim::kFrameBytes)) {
    low = high + 1;
    high += high / 32 + 1;
  }
  if (high > kMaxFrames) return std::nullopt;
  while (low < high) {
    const std::uint64_t middle = low + (high - low) / 2;
    if (fits(middle * sim::kFrameBytes)) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return Fit{high * sim::kFrameBytes, CountFailuresAbove(high, fits)};
}

std::optional<Fit> FindFit(const Trace& trace, const Options& options,
                           std::uint64_t enough_bytes,
                           const std::function<void(int)>& progress,
                           const PassPlan& plan) {
  Options tried = WithoutRecordings(options);
  int replays = 0;
  return SearchFit(trace.peak_live_bytes, enough_bytes,
                   [&](std::uint64_t capacity_bytes) {
                     progress(replays++);
                     tried.platform.sim_memory_bytes = capacity_bytes;
                     return ServesAll(Replay(trace, tried, plan));
                   });
}

}  // namespace strata::tools
