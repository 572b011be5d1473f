#ifndef STRATA_TOOLS_REPLAY_REPLAY_H_
#define STRATA_TOOLS_REPLAY_REPLAY_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "strata/facade/options.h"
#include "strata/tools/replay/replay_passes.h"
#include "strata/tools/trace/trace.h"

namespace strata::tools {

// The result of one replay of a trace.
struct ReplayResult {
  // The allocate that failed for lack of memory; later events did not run.
  std::optional<std::size_t> failed_event;
  std::uint64_t failed_pass = 1;  // the pass in which it failed
  std::string failure;            // reason of the failure, if any
  // Requests that failed when they were recorded (TraceEvent: a try) and fail
  // again, in any pass: their number, and the first.
  std::uint64_t failed_tries = 0;
  std::optional<std::size_t> first_failed_try;
  // The peak of the memory held from the device, without memory of other
  // processes and without managed memory.
  std::uint64_t peak_reserved_bytes = 0;
  bool has_managed_memory = false;
  // Calls that reached the device from the first event to the last, by
  // DeviceCallName; without zero counts.
  CallCounts device_calls;
  double modelled_device_us = 0;  // modelled time of a driver for them
  std::uint64_t elapsed_ns = 0;   // on the host's clock, from first to last
  // Completed passes of a plan, and their samples.
  std::uint64_t passes_done = 0;
  std::vector<PassSample> passes;

  // The sample of a pass; null if there is none.
  const PassSample* SampleOf(std::uint64_t pass) const;
};

// Whether every request was served, including those that failed when they were
// recorded.
inline bool ServesAll(const ReplayResult& result) {
  return !result.failed_event && result.failed_tries == 0;
}

// Replays `trace` in its order on one thread, on a separate simulated device
// with strata_sim_memory. It uses a facade built from `options`, or the peer
// that allocator_strategy names (peers/registry.h). The default stream of the
// trace is the device's legacy stream; each other stream gets a stream of the
// device. `plan` may request several passes through the trace: live blocks are
// freed at the end of each. A request that fails ends the replay.
//
// Errors: std::invalid_argument for a wrong option; std::runtime_error if
//   memory or a stream leaks, if a device call fails for another reason than
//   lack of memory, or if the peer needs features that the device lacks.
ReplayResult Replay(const Trace& trace, const Options& options,
                    const PassPlan& plan = {});

// Replay that also checks every block.
//
// Errors: also std::runtime_error, naming the line of the trace, for a block
//   that overlaps a live one, is too small, not aligned, or changed while live.
ReplayResult CheckedReplay(const Trace& trace, const Options& options,
                           const PassPlan& plan = {});

}  // namespace strata::tools

#endif  // STRATA_TOOLS_REPLAY_REPLAY_H_
