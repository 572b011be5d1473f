#include "strata/platform/sim/faults/capacity_steps.h"

#include <limits>
#include <string_view>

#include "strata/platform/sim/faults/option_text.h"

namespace strata::sim {
namespace {

constexpr OptionText kText("strata_sim_capacity_steps");

void ParseOption(std::string_view option, CapacityStep* step) {
  std::string_view value = option;
  const std::string_view key = OptionText::NextPart(&value, '=');
  if (key == "nth") {
    step->nth = kText.Number(option, value, 1,
                             std::numeric_limits<std::uint64_t>::max());
  } else if (key == "take") {
    step->take_bytes = kText.Bytes(option, value);
  } else if (key == "give") {
    step->give_bytes = kText.Bytes(option, value);
  } else if (key == "device") {
    step->device = static_cast<int>(
        kText.Number(option, value, 0, std::numeric_limits<int>::max()));
  } else {
    kText.Reject(option, "is no option (known: nth, take, give, device)");
  }
}

CapacityStep ParseStep(std::string_view text) {
  std::string_view options = text;
  CapacityStep step;
  step.call = kText.Call(OptionText::NextPart(&options, ':'));
  while (!options.empty()) {
    const bool more = options.find(',') != std::string_view::npos;
    ParseOption(OptionText::NextPart(&options, ','), &step);
    if (more && options.empty()) kText.Reject(text, "ends with ','");
  }
  if (step.nth == 0) kText.Reject(text, "has no nth");
  if ((step.take_bytes == 0) == (step.give_bytes == 0)) {
    kText.Reject(text, "has not exactly one of take and give");
  }
  return step;
}

}  // namespace

std::vector<CapacityStep> ParseCapacitySteps(const std::string& text) {
  std::vector<CapacityStep> steps;
  std::string_view rest = text;
  while (!rest.empty()) {
    steps.push_back(ParseStep(OptionText::NextPart(&rest, ';')));
  }
  return steps;
}

void CapacitySchedule::Add(const CapacityStep& step) {
  if (step.device >= 0 && step.device != device_) return;
  std::lock_guard lock(mutex_);
  pending_.push_back({step, 0});
  armed_.store(true, std::memory_order_release);
}

std::vector<CapacityStep> CapacitySchedule::Due(DeviceCall call) {
  std::lock_guard lock(mutex_);
  std::vector<CapacityStep> due;
  for (Pending& pending : pending_) {
    if (pending.step.call != call) continue;
    if (++pending.calls == pending.step.nth) due.push_back(pending.step);
  }
  return due;
}

}  // namespace strata::sim
