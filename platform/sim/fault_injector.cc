#include "strata/platform/sim/fault_injector.h"

#include <charconv>
#include <cstdlib>
#include <stdexcept>
#include <string_view>
#include <system_error>

#include "strata/platform/sim/random.h"

namespace strata {
namespace {

[[noreturn]] void Reject(std::string_view part, const char* reason) {
  throw std::invalid_argument("strata_sim_fault: '" + std::string(part) + "' " +
                              reason);
}

// The text before the first `separator`, which leaves `text` with it.
std::string_view NextPart(std::string_view* text, char separator) {
  const std::size_t end = text->find(separator);
  const std::string_view part = text->substr(0, end);
  text->remove_prefix(end == std::string_view::npos ? text->size() : end + 1);
  return part;
}

template <class Number>
Number ParseNumber(std::string_view option, std::string_view value,
                   Number least) {
  Number number = 0;
  const char* end = value.data() + value.size();
  const auto parsed = std::from_chars(value.data(), end, number);
  if (parsed.ec != std::errc() || parsed.ptr != end || number < least) {
    Reject(option, "is not a number in range");
  }
  return number;
}

double ParseProbability(std::string_view option, std::string_view value) {
  // from_chars for doubles is missing from older standard libraries.
  const std::string text(value);
  char* end = nullptr;
  const double number = std::strtod(text.c_str(), &end);
  const bool plain =
      value.find_first_not_of("0123456789.e-") == std::string_view::npos;
  if (!plain || text.empty() || *end != '\0' || !(number > 0 && number <= 1)) {
    Reject(option, "is not a probability in (0, 1]");
  }
  return number;
}

Status ParseFault(std::string_view option, std::string_view value) {
  Status status = Status::kSuccess;
  if (!ParseStatus(std::string(value), &status) || status == Status::kSuccess) {
    Reject(option, "is not a status of a failure");
  }
  return status;
}

void ParseOption(std::string_view option, FaultRule* rule) {
  std::string_view value = option;
  const std::string_view key = NextPart(&value, '=');
  if (key == "nth") {
    rule->nth = ParseNumber<std::uint64_t>(option, value, 1);
  } else if (key == "every") {
    rule->every = ParseNumber<std::uint64_t>(option, value, 1);
  } else if (key == "probability") {
    rule->probability = ParseProbability(option, value);
  } else if (key == "min_bytes") {
    rule->min_bytes = ParseNumber<std::size_t>(option, value, 1);
  } else if (key == "count") {
    rule->count = ParseNumber<std::uint64_t>(option, value, 1);
  } else if (key == "status") {
    rule->status = ParseFault(option, value);
  } else if (key == "device") {
    rule->device = ParseNumber<int>(option, value, 0);
  } else {
    Reject(option,
           "is no option (known: nth, every, probability, min_bytes, count, "
           "status, device)");
  }
}

bool HasOneTrigger(const FaultRule& rule) {
  const int triggers = (rule.nth != 0 ? 1 : 0) + (rule.every != 0 ? 1 : 0) +
                       (rule.probability != 0 ? 1 : 0);
  return triggers <= 1;
}

FaultRule ParseRule(std::string_view text) {
  std::string_view options = text;
  const std::string_view call = NextPart(&options, ':');
  FaultRule rule;
  if (!ParseDeviceCall(call, &rule.call)) {
    Reject(call, "is no device call (known: see device_calls.def)");
  }
  if (text.size() > call.size() && options.empty()) {
    Reject(text, "has no option after ':'");
  }
  while (!options.empty()) {
    const bool more = options.find(',') != std::string_view::npos;
    ParseOption(NextPart(&options, ','), &rule);
    if (more && options.empty()) Reject(text, "ends with ','");
  }
  if (!HasOneTrigger(rule)) {
    Reject(text, "has more than one of nth, every and probability");
  }
  return rule;
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
  while (!rest.empty()) rules.push_back(ParseRule(NextPart(&rest, ';')));
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
  // Rules and devices draw from sequences of their own.
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

Status FaultInjector::NextSlow(DeviceCall call, std::size_t bytes) {
  std::lock_guard lock(mutex_);
  Status status = Status::kSuccess;
  for (ActiveRule& active : active_) {
    const FaultRule& rule = active.rule;
    if (rule.call != call || bytes < rule.min_bytes) continue;
    if (rule.device >= 0 && rule.device != device_) continue;
    // Every rule counts the call; the first that picks it decides.
    if (!Picks(&active) || status != Status::kSuccess) continue;
    ++active.failures;
    status = rule.status != Status::kSuccess ? rule.status
                                             : DefaultFaultStatus(call);
  }
  return status;
}

}  // namespace strata
