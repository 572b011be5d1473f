#include "strata/tools/replay/replay_passes.h"

#include <algorithm>
#include <utility>

namespace strata::tools {
namespace {

constexpr std::uint64_t kJitterSeed = 0x5354524154414a54;
constexpr std::uint64_t kMillion = 1'000'000;
constexpr std::uint64_t kFirstPasses = 10;

// The finalizer of SplitMix64: each bit of the result depends on each bit of
// `value`.
std::uint64_t Mixed(std::uint64_t value) {
  value += 0x9e3779b97f4a7c15;
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9;
  value = (value ^ (value >> 27)) * 0x94d049bb133111eb;
  return value ^ (value >> 31);
}

}  // namespace

std::uint64_t JitteredBytes(std::uint64_t bytes, std::uint32_t jitter_ppm,
                            std::uint64_t pass, std::uint64_t request) {
  if (pass <= 1 || jitter_ppm == 0 || bytes == 0) return bytes;
  const std::uint64_t most =
      bytes / kMillion * jitter_ppm + bytes % kMillion * jitter_ppm / kMillion;
  // At most half of `bytes`, so that neither `choices` nor the size is 0.
  const std::uint64_t choices = 2 * most + 1;
  const std::uint64_t random = Mixed(Mixed(kJitterSeed ^ pass) ^ request);
  const std::uint64_t least = bytes - most;
  const std::uint64_t more = random % choices;
  return more > UINT64_MAX - least ? UINT64_MAX : least + more;
}

std::uint64_t PassSample::CallCount() const {
  std::uint64_t count = 0;
  for (const auto& [name, calls] : device_calls) count += calls;
  return count;
}

bool IsSampledPass(std::uint64_t pass) {
  if (pass <= kFirstPasses) return true;
  while (pass % 10 == 0) pass /= 10;
  return pass == 1 || pass == 2 || pass == 5;
}

DeviceCounts::DeviceCounts(const SimDevice& device)
    : calls_(), modelled_ns_(device.modelled_ns()) {
  for (std::size_t i = 0; i < kDeviceCallCount; ++i) {
    calls_[i] = device.CallCount(static_cast<DeviceCall>(i));
  }
}

CallCounts DeviceCounts::CallsSince(const DeviceCounts& before) const {
  CallCounts counts;
  for (std::size_t i = 0; i < kDeviceCallCount; ++i) {
    const std::uint64_t count = calls_[i] - before.calls_[i];
    if (count == 0) continue;
    counts[DeviceCallName(static_cast<DeviceCall>(i))] = count;
  }
  return counts;
}

PassMeter::PassMeter(SimDevice& device) : device_(device), before_(device) {}

void PassMeter::EndPass(std::uint64_t pass) {
  const DeviceCounts after(device_);
  last_ = {pass, after.CallsSince(before_), after.NsSince(before_),
           longest_request_ns_, device_.peak_used_bytes()};
  if (IsSampledPass(pass)) samples_.push_back(last_);
  peak_reserved_bytes_ =
      std::max(peak_reserved_bytes_, last_.peak_reserved_bytes);
  longest_request_ns_ = 0;
  device_.ResetPeakUsedBytes();
  before_ = after;
}

std::vector<PassSample> PassMeter::TakeSamples() {
  if (!samples_.empty() && samples_.back().pass != last_.pass) {
    samples_.push_back(last_);
  }
  return std::move(samples_);
}

std::uint64_t PassMeter::peak_reserved_bytes() const {
  return std::max(peak_reserved_bytes_, device_.peak_used_bytes());
}

}  // namespace strata::tools
