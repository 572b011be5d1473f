#ifndef STRATA_TOOLS_REPLAY_REPLAY_PASSES_H_
#define STRATA_TOOLS_REPLAY_REPLAY_PASSES_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "strata/platform/calls/device_call.h"
#include "strata/platform/sim/device/sim_device.h"

namespace strata::tools {

// The number of passes of a replay through its trace, in one allocator.
struct PassPlan {
  // 0: one pass without the frees at its end, and without measurements.
  std::uint64_t passes = 0;
  // Largest relative change of a size, up or down, from the second pass on; in
  // millionths.
  std::uint32_t jitter_ppm = 0;
  // Called before each pass with its number, from 1; may be empty.
  std::function<void(std::uint64_t pass)> on_pass;
};

inline constexpr std::uint32_t kMostJitterPpm = 500'000;

// The size of request number `request` in pass number `pass` for a recorded
// size. Depends on the arguments only, so every strategy gets the same sizes.
// The first pass has the recorded sizes; a size of 0 remains 0.
std::uint64_t JitteredBytes(std::uint64_t bytes, std::uint32_t jitter_ppm,
                            std::uint64_t pass, std::uint64_t request);

using CallCounts = std::map<std::string, std::uint64_t>;  // by DeviceCallName

// The measurements of one pass, including the frees at its end.
struct PassSample {
  std::uint64_t pass = 0;  // from 1
  CallCounts device_calls;
  std::uint64_t modelled_ns = 0;
  // Device time of the slowest allocation.
  std::uint64_t longest_request_ns = 0;
  // Without managed memory.
  std::uint64_t peak_reserved_bytes = 0;

  std::uint64_t CallCount() const;
};

// Whether the sample of a pass is stored: each up to the tenth, then 20, 50,
// 100, 200, …, so that there are few samples. The last pass is stored as well.
bool IsSampledPass(std::uint64_t pass);

// The counts of a device at one moment.
class DeviceCounts {
 public:
  explicit DeviceCounts(const SimDevice& device);

  CallCounts CallsSince(const DeviceCounts& before) const;
  std::uint64_t NsSince(const DeviceCounts& before) const {
    return modelled_ns_ - before.modelled_ns_;
  }

 private:
  std::array<std::uint64_t, kDeviceCallCount> calls_;
  std::uint64_t modelled_ns_;
};

// Measures the passes of a replay on its device.
class PassMeter {
 public:
  // Begins the first pass.
  explicit PassMeter(SimDevice& device);

  // Call after a request was served for which the device took `ns`.
  void Served(std::uint64_t ns) {
    if (ns > longest_request_ns_) longest_request_ns_ = ns;
  }
  // Ends pass number `pass` and begins the next one.
  void EndPass(std::uint64_t pass);
  // The samples, in order, the last pass included.
  std::vector<PassSample> TakeSamples();
  // The peak of the reserved bytes over all passes.
  std::uint64_t peak_reserved_bytes() const;

 private:
  SimDevice& device_;
  DeviceCounts before_;
  std::uint64_t longest_request_ns_ = 0;
  std::uint64_t peak_reserved_bytes_ = 0;  // over the completed passes
  PassSample last_;                        // pass 0: none completed
  std::vector<PassSample> samples_;
};

}  // namespace strata::tools

#endif  // STRATA_TOOLS_REPLAY_REPLAY_PASSES_H_
