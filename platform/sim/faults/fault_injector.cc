#include "strata/platform/sim/faults/fault_injector.h"

#include <cstdio>
#include <limits>
#include <locale>
#include <sstream>
#include <stdexcept>
#include <string_view>

#include "strata/platform/sim/faults/option_text.h"
#include "strata/platform/sim/streams/random.h"

namespace strata::sim {
namespace {

constexpr OptionText kFaultText("strata_sim_fault");
constexpr std::uint64_t kMostOrdinal = std::numeric_limits<int>::max();
constexpr std::uint64_t kMostDelayNs = std::uint64_t{1} << 50;  // 13 days
constexpr std::uint64_t kAnyNumber = std::numeric_limits<std::uint64_t>::max();

double ParseProbability(std::string_view option, std::string_view value) {
  // from_chars for doubles is missing from older standard libraries, and strtod
  // depends on the program's locale.
  std::istringstream text{std::string(value)};
  text.imbue(std::locale::classic());
  double number = 0;
  const bool whole = (text >> number) && text.peek() == EOF;
  const bool plain =
      value.find_first_not_of("0123456789.e-") == std::string_view::npos;
  if (!plain || !whole || !(number > 0 && number <= 1)) {
    kFaultText.Reject(option, "is not a probability in (0, 1]");
  }
  return number;
}

Status ParseFault(std::string_view option, std::string_view value) {
  Status status = Status::kSuccess;
  if (!ParseStatus(std::string(value), &status) || status == Status::kSuccess) {
    kFaultText.Reject(option, "is not a status of a failure");
  }
  return status;
}

void ParseOption(std::string_view option, FaultRule* rule) {
  std::string_view value = option;
  const std::string_view key = OptionText::NextPart(&value, '=');
  if (key == "nth") {
    rule->nth = kFaultText.Number(option, value, 1, kAnyNumber);
  } else if (key == "every") {
    rule->every = kFaultText.Number(option, value, 1, kAnyNumber);
  } else if (key == "probability") {
    rule->probability = ParseProbability(option, value);
  } else if (key == "min_bytes") {
    rule->min_bytes = kFaultText.Number(option, value, 1, kAnyNumber);
  } else if (key == "count") {
    rule->count = kFaultText.Number(option, value, 1, kAnyNumber);
  } else if (key == "status") {
    rule->status = ParseFault(option, value);
  } else if (key == "device") {
    rule->device =
        static_cast<int>(kFaultText.Number(option, value, 0, kMostOrdinal));
  } else if (key == "sticky") {
    rule->sticky = kFaultText.Number(option, value, 0, 1) == 1;
  } else if (key == "delay_ns") {
    rule->delay_ns = kFaultText.Number(option, value, 1, kMostDelayNs);
  } else if (key == "invalidate") {
    rule->invalidate = kFaultText.Number(option, value, 0, 1) == 1;
  } else {
    kFaultText.Reject(
        option,
        "is no option (known: nth, every, probability, min_bytes, count, "
        "status, device, sticky, delay_ns, invalidate)");
  }
}

bool HasOneTrigger(const FaultRule& rule) {
  const int triggers = (rule.nth != 0 ? 1 : 0) + (rule.every != 0 ? 1 : 0) +
                       (rule.probability != 0 ? 1 : 0);
  return triggers <= 1;
}

FaultRule ParseRule(std::string_view text) {
  std::string_view options = text;
  const std::string_view call = OptionText::NextPart(&options, ':');
  FaultRule rule;
  rule.call = kFaultText.Call(call);
  if (text.size() > call.size() && options.empty()) {
    kFaultText.Reject(text, "has no option after ':'");
  }
  while (!options.empty()) {
    const bool more = options.find(',') != std::string_view::npos;
    ParseOption(OptionText::NextPart(&options, ','), &rule);
    if (more && options.empty()) kFaultText.Reject(text, "ends with ','");
  }
  if (!HasOneTrigger(rule)) {
    kFaultText.Reject(text, "has more than one of nth, every and probability");
  }
  return rule;
}

// kSuccess for a rule that lets the call proceed.
Status StatusOf(const FaultRule& rule) {
  if (rule.status != Status::kSuccess) return rule.status;
  if (rule.sticky) return Status::kIllegalAddress;
  const bool goes_on = rule.delay_ns != 0 || rule.invalidate;
  return goes_on ? Status::kSuccess : DefaultFaultStatus(rule.call);
}

}  // namespace

Status DefaultFaultStatus(DeviceCall call) {
  switch (call) {
    case DeviceCall::kMemAlloc:
    case DeviceCall::kMallocHost:
    case DeviceCall::kMallocManaged:
    case DeviceCall::kCreateMemory:
    case DeviceCall::kMallocFromPoolAsync:
      return Status::kMemoryAllocation;
    default:
      return Status::kUnknown;
  }
}

std::vector<FaultRule> ParseFaultRules(const std::string& text) {
  std::vector<FaultRule> rules;
  std::string_view rest = text;
  while (!rest.empty()) {
    rules.push_back(ParseRule(OptionText::NextPart(&rest, ';')));
  }
  return rules;
}

FaultInjector::FaultInjector(int device, std::uint64_t seed)
    : device_(device), seed_(seed) {}

void FaultInjector::Add(const FaultRule& rule) {
  if (!HasOneTrigger(rule)) {
    throw std::invalid_argument(
        "a fault rule has more than one of nth, every and probability");
  }
  if (!(rule.probability >= 0 && rule.probability <= 1)) {
    throw std::invalid_argument(
        "the probability of a fault rule is not in [0, 1]");
  }
  std::lock_guard lock(mutex_);
  ActiveRule active;
  active.rule = rule;
  // Each rule and device draws from its own sequence.
  active.random_state =
      seed_ ^ (static_cast<std::uint64_t>(device_) << 32) ^ ++rules_added_;
  NextRandom(&active.random_state);
  active_.push_back(active);
  armed_.store(true, std::memory_order_release);
}

void FaultInjector::Clear() {
  std::lock_guard lock(mutex_);
  active_.clear();
  armed_.store(false, std::memory_order_release);
}

bool FaultInjector::Picks(ActiveRule* active) {
  const FaultRule& rule = active->rule;
  const std::uint64_t match = ++active->matches;
  // Drawn for every match, so that `count` does not shift later draws.
  const bool drawn = static_cast<double>(NextRandom(&active->random_state) >>
                                         11) < rule.probability * 0x1p53;
  const std::uint64_t limit =
      rule.count != 0 ? rule.count : (rule.nth != 0 ? 1 : ~std::uint64_t{0});
  if (active->failures >= limit) return false;
  if (rule.nth != 0) return match >= rule.nth;
  if (rule.every != 0) return match % rule.every == 0;
  return rule.probability == 0 || drawn;
}

FaultEffect FaultInjector::NextSlow(DeviceCall call, std::size_t bytes) {
  std::lock_guard lock(mutex_);
  FaultEffect effect;
  for (ActiveRule& active : active_) {
    const FaultRule& rule = active.rule;
    if (rule.call != call || bytes < rule.min_bytes) continue;
    if (rule.device >= 0 && rule.device != device_) continue;
    // Every rule counts the call. The first rule that selects the call
    // determines the status.
    if (!Picks(&active)) continue;
    if (effect.status != Status::kSuccess) continue;
    ++active.failures;
    effect.delay_ns += rule.delay_ns;
    effect.status = StatusOf(rule);
    effect.sticky = rule.sticky;
    effect.invalidate = effect.invalidate || rule.invalidate;
  }
  return effect;
}

}  // namespace strata::sim
