#ifndef STRATA_TOOLS_REPLAY_H_
#define STRATA_TOOLS_REPLAY_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "strata/facade/options.h"
#include "strata/tools/replay_passes.h"
#include "strata/tools/trace.h"

namespace strata {

// What one replay of a trace came to.
struct ReplayResult {
  // The allocate that failed for lack of memory; what follows it did not run.
  std::optional<std::size_t> failed_event;
  std::uint64_t failed_pass = 1;  // the pass in which it failed
  std::string failure;            // why, if it did
  // Requests that failed when they were recorded (TraceEvent: a try) and fail
  // again, in any pass: their number, and the first.
  std::uint64_t failed_tries = 0;
  std::optional<std::size_t> first_failed_try;
  // The most that the device had given, but for what other processes took, and
  // the most managed memory that there was.
  std::uint64_t peak_reserved_bytes = 0;
  bool has_managed_memory = false;
  // Calls that reached the device from the first event to the last; only those
  // that did, by DeviceCallName.
  CallCounts device_calls;
  double modelled_device_us = 0;  // what a driver would have taken for them
  std::uint64_t elapsed_ns = 0;   // on the host's clock, from first to last
  // Passes that ended, of those that a plan asked for, and their samples.
  std::uint64_t passes_done = 0;
  std::vector<PassSample> passes;

  // The sample of a pass; null if there is none.
  const PassSample* SampleOf(std::uint64_t pass) const;
};

// Whether every request was served, those too that failed when they were
// recorded.
inline bool ServesAll(const ReplayResult& result) {
  return !result.failed_event && result.failed_tries == 0;
}

// Replays `trace` in its order on one thread, through a facade built from
// `options`, or on the peer that allocator_strategy names (peers/registry.h),
// on a simulated device of its own with strata_sim_memory. The default stream
// of the trace is the device's legacy stream; each other one gets a stream of
// the device. `plan` may ask for several passes through the trace: at the end
// of each, live blocks are freed. A request that fails ends the replay.
//
// Errors: std::invalid_argument for a wrong option; std::runtime_error if
//   memory or a stream leaks, or a device call fails for another reason than
//   lack of memory, or the peer needs a device that can do more.
ReplayResult Replay(const Trace& trace, const Options& options,
                    const PassPlan& plan = {});

// The same, and looks at every block.
//
// Errors: also std::runtime_error, naming the line of the trace, for a block
//   that overlaps a live one, is too small, not aligned, or changed while live.
ReplayResult CheckedReplay(const Trace& trace, const Options& options,
                           const PassPlan& plan = {});

}  // namespace strata

#endif  // STRATA_TOOLS_REPLAY_H_
