#include "strata/facade/options.h"

#include <array>
#include <charconv>
#include <filesystem>
#include <limits>
#include <mutex>
#include <set>
#include <stdexcept>
#include <system_error>
#include <type_traits>
#include <utility>

#include "strata/allocation/decorators/fault_allocator.h"
#include "strata/allocation/guard/guard_settings.h"
#include "strata/base/log.h"
#include "strata/base/parse_number.h"
#include "strata/base/size.h"
#include "strata/facade/settings/auto_strategy.h"
#include "strata/facade/settings/registered_options.h"
#include "strata/strategy/option_bytes.h"
#include "strata/strategy/registry.h"

namespace strata {
namespace {

// The fill byte of init_allocated_mem (paddle.md §2).
constexpr unsigned char kInitByte = 0xEF;

[[noreturn]] void BadValue(std::string_view name, std::string_view value,
                           const char* expected) {
  throw std::invalid_argument(std::string(name) + ": '" + std::string(value) +
                              "' is not " + expected);
}

template <class Number>
void SetNumber(std::string_view name, std::string_view value,
               const char* expected, Number& out) {
  const auto number = ParseNumber<Number>(value);
  if (!number) BadValue(name, value, expected);
  out = *number;
}

void SetBool(std::string_view name, std::string_view value, bool& out) {
  if (value == "true" || value == "1") {
    out = true;
  } else if (value == "false" || value == "0") {
    out = false;
  } else {
    BadValue(name, value, "true or false");
  }
}

template <class Field>
void SetInt64(std::string_view name, std::string_view value, Field& out) {
  std::int64_t number = 0;
  SetNumber(name, value, "a whole number", number);
  if (number < std::numeric_limits<Field>::min() ||
      number > std::numeric_limits<Field>::max()) {
    BadValue(name, value, "in range");
  }
  out = static_cast<Field>(number);
}

void SetUint64(std::string_view name, std::string_view value,
               std::uint64_t& out) {
  SetNumber(name, value, "a whole number that is not negative", out);
}

void SetDouble(std::string_view name, std::string_view value, double& out) {
  SetNumber(name, value, "a number", out);
}

void SetString(std::string_view /*name*/, std::string_view value,
               std::string& out) {
  out = value;
}

void SetBytes(std::string_view name, std::string_view value,
              std::uint64_t& out) {
  const auto bytes = ParseBytes(value);
  if (!bytes) BadValue(name, value, "a size such as 512MiB or 80GiB");
  out = *bytes;
}

// Quotes the value if the parser would read it differently without quotes.
std::string QuotedIfNeeded(const std::string& value) {
  if (value.find_first_of(",; '") == std::string::npos) return value;
  std::string text = "'";
  for (const char c : value) text += c == '\'' ? "''" : std::string(1, c);
  return text + "'";
}

template <class Field>
std::string Show(const Field& value) {
  if constexpr (std::is_same_v<Field, std::string>) {
    return QuotedIfNeeded(value);
  } else if constexpr (std::is_same_v<Field, bool>) {
    return value ? "true" : "false";
  } else {
    // The shortest text that reads back as the same number, in any locale.
    std::array<char, 32> text{};
    const auto result =
        std::to_chars(text.data(), text.data() + text.size(), value);
    return {text.data(), result.ptr};
  }
}

// The default of a row of options.def.
std::string ShowDefault(const char* text) { return QuotedIfNeeded(text); }
template <class Number>
std::string ShowDefault(Number number) {
  return Show(number);
}

struct Row {
  OptionInfo info;
  void (*set)(Options&, std::string_view name, std::string_view value);
  std::string (*show)(const Options&);
};

const std::vector<Row>& Rows() {
  static const auto* const rows = new std::vector<Row>{
#define STRATA_OPTION(Type, name, member, default_value, help)                \
  Row{OptionInfo{#name, #Type, ShowDefault(default_value), help},             \
      [](Options& options, std::string_view option, std::string_view value) { \
        Set##Type(option, value, options.member);                             \
      },                                                                      \
      [](const Options& options) { return Show(options.member); }},
#include "strata/facade/options.def"
#undef STRATA_OPTION
  };
  return *rows;
}

// One "name=value" of an option string.
struct Assignment {
  std::string name;
  std::string value;
};

bool IsSeparator(char c) { return c == ',' || c == ';' || c == ' '; }

// Returns the value that starts at `at`, and moves `at` behind it.
std::string TakeValue(std::string_view text, std::size_t& at,
                      const std::string& name) {
  std::string value;
  if (at == text.size() || text[at] != '\'') {
    while (at < text.size() && !IsSeparator(text[at])) value += text[at++];
    return value;
  }
  for (++at; at < text.size(); ++at) {
    if (text[at] == '\'') {
      ++at;
      // Two quotes in a row stand for one.
      if (at == text.size() || IsSeparator(text[at])) return value;
      if (text[at] != '\'') {
        throw std::invalid_argument(name +
                                    ": a separator has to follow the quote");
      }
    }
    value += text[at];
  }
  throw std::invalid_argument(name + ": the quote is not closed");
}

// Whether `name` is a removed option; the first time, it logs a warning.
bool IsRemoved(std::string_view name) {
  static std::mutex mutex;
  static auto* const warned = new std::set<std::string_view>;
  for (const RemovedOption& option : RemovedOptions()) {
    if (name != option.name) continue;
    std::unique_lock<std::mutex> lock(mutex);
    const bool is_first = warned->insert(option.name).second;
    lock.unlock();
    STRATA_LOG_IF(Warning, is_first)
        << "option " << option.name
        << " has no effect any more: " << option.why;
    return true;
  }
  return false;
}

// The value of an option without "=value": only a Bool allows that.
std::string ValueAlone(std::string_view name) {
  for (const OptionInfo& option : OptionTable()) {
    if (name == option.name) {
      return std::string_view(option.type) == "Bool" ? "true" : "";
    }
  }
  return "";
}

std::vector<Assignment> SplitAssignments(std::string_view text) {
  std::vector<Assignment> result;
  std::size_t at = 0;
  while (at < text.size()) {
    if (IsSeparator(text[at])) {
      ++at;
      continue;
    }
    Assignment next;
    while (at < text.size() && !IsSeparator(text[at]) && text[at] != '=') {
      next.name += text[at++];
    }
    while (next.name.starts_with('-')) next.name.erase(0, 1);
    if (at < text.size() && text[at] == '=') {
      ++at;
      next.value = TakeValue(text, at, next.name);
    } else {
      next.value = ValueAlone(next.name);
    }
    result.push_back(std::move(next));
  }
  return result;
}

// Throws unless `strategy`, the value of `option`, is one of this build or
// `other`.
void CheckStrategy(const char* option, const std::string& strategy,
                   std::string_view other) {
  if (strategy == other) return;
  std::string known(other);
  for (const std::string& name : StrategyNames()) {
    if (name == strategy) return;
    known += (known.empty() ? "" : ", ") + name;
  }
  std::string text = std::string(option) + ": unknown strategy '";
  text += strategy + "' (known: " + known + ")";
  if (strategy.starts_with("peer:")) {
    text +=
        "; only the comparisons of strata replay and strata bench have "
        "peers";
  }
  throw std::invalid_argument(text);
}

// Throws if strata_ipc is unknown, or the strategy cannot share memory in that
// way.
void CheckIpc(const Options& options) {
  if (options.ipc != "posix" && options.ipc != "legacy") {
    throw std::invalid_argument("strata_ipc: '" + options.ipc +
                                "' is unknown (known: posix, legacy)");
  }
  const std::string strategy = options.Strategy();
  if (options.ipc == "legacy" &&
      (TraitsOf(strategy) & kNoLegacyIpcMemory) != 0) {
    throw std::invalid_argument(
        "strata_ipc=legacy contradicts allocator_strategy=" + strategy +
        "; use auto_growth or auto: cudaIpc handles name memory of cudaMalloc "
        "only");
  }
}

// Throws if an alias of a strategy contradicts another alias, the strategy that
// the user chose, or a kind of memory that the strategy does not support.
void CheckAliases(const Options& options, bool strategy_was_set) {
  const std::string in_words =
      "allocator_strategy=" + options.allocator_strategy;
  std::string chosen_by = in_words;
  const auto contradict = [](const std::string& one, const std::string& other,
                             const std::string& why) {
    throw std::invalid_argument(one + " contradicts " + other + ": " + why);
  };
  const auto check = [&](bool is_set, const char* option,
                         const std::string& strategy) {
    if (!is_set) return;
    const std::string means = "it means allocator_strategy=" + strategy;
    if (strategy != options.Strategy()) contradict(option, chosen_by, means);
    if (strategy_was_set && strategy != options.allocator_strategy) {
      contradict(option, in_words, means);
    }
    chosen_by = option;
  };
  check(options.use_system_allocator, "use_system_allocator", "direct");
  check(options.use_cuda_malloc_async_allocator,
        "use_cuda_malloc_async_allocator", "cuda_malloc_async");
  if (options.use_cuda_managed_memory &&
      (TraitsOf(options.Strategy()) & kPoolsInDriver) != 0) {
    contradict("use_cuda_managed_memory", chosen_by,
               "a driver's pool has no managed memory");
  }
}

// The strategy whose limits apply: auto may choose auto_growth.
std::string LimitedStrategy(const std::string& strategy) {
  return strategy == kAutoStrategy ? "auto_growth" : strategy;
}

// Throws if two options of host memory contradict each other.
void CheckHost(const Options& options) {
  const HostOptions& host = options.host;
  const auto check = [&options](const char* option, const std::string& value) {
    CheckStrategy(option, value, kAutoStrategy);
    if (options.use_system_allocator && value != "direct" &&
        value != kAutoStrategy) {
      throw std::invalid_argument("use_system_allocator contradicts " +
                                  std::string(option) + "=" + value +
                                  ": it means direct at every place");
    }
  };
  check("strata_host_strategy", host.strategy);
  check("strata_pinned_strategy", host.pinned_strategy);
  if (!host.use_auto_growth_pinned_allocator) return;
  if (host.pinned_strategy != "auto" && host.pinned_strategy != "auto_growth") {
    throw std::invalid_argument(
        "use_auto_growth_pinned_allocator contradicts strata_pinned_strategy=" +
        host.pinned_strategy + ": it means auto_growth");
  }
  if (options.use_system_allocator) {
    throw std::invalid_argument(
        "use_system_allocator contradicts use_auto_growth_pinned_allocator: it "
        "means direct at every place");
  }
}

std::string KnownOptions() {
  std::string known;
  for (const OptionInfo& option : OptionTable()) {
    known += (known.empty() ? "" : ", ") + std::string(option.name);
  }
  return known;
}

}  // namespace

void Options::Set(std::string_view name, std::string_view value) {
  for (const Row& row : Rows()) {
    if (name == row.info.name) {
      row.set(*this, name, value);
      return;
    }
  }
  if (SetRegisteredOption(*this, name, value) || IsRemoved(name)) return;
  throw std::invalid_argument("unknown option '" + std::string(name) +
                              "' (known: " + KnownOptions() + ")");
}

Options Options::Parse(std::string_view text) {
  Options options;
  std::set<std::string> names;
  for (const Assignment& assignment : SplitAssignments(text)) {
    options.Set(assignment.name, assignment.value);
    if (!names.insert(assignment.name).second) {
      throw std::invalid_argument("option '" + assignment.name +
                                  "' is set twice");
    }
  }
  options.Validate(/*strategy_was_set=*/names.count("allocator_strategy") != 0);
  return options;
}

namespace {

// Compares files, not spellings of a path. A character device such as /dev/null
// accepts several writers.
bool AreOneFile(const std::string& one, const std::string& other) {
  namespace fs = std::filesystem;
  std::error_code error;
  if (fs::is_character_file(one, error)) return false;
  if (one == other || fs::equivalent(one, other, error)) return true;
  const auto canonical = [&](const std::string& path) {
    return fs::weakly_canonical(fs::absolute(path, error), error);
  };
  return canonical(one) == canonical(other) && !error;
}

// Each of two writers would truncate the output of the other.
void CheckFiles(const DecoratorOptions& decorators,
                const PlatformOptions& platform) {
  const std::array<std::pair<const char*, const std::string&>, 4> files = {{
      {"strata_trace_file", decorators.trace_path},
      {"strata_trace_events_file", decorators.trace_events_path},
      {"strata_allocation_log_file", decorators.allocation_log_path},
      {"strata_device_trace_file", platform.device_trace_path},
  }};
  for (auto one = files.begin(); one != files.end(); ++one) {
    if (one->second.empty()) continue;
    for (auto other = one + 1; other != files.end(); ++other) {
      if (other->second.empty() || !AreOneFile(one->second, other->second)) {
        continue;
      }
      throw std::invalid_argument(std::string(one->first) + " contradicts " +
                                  other->first + ": both are '" + one->second +
                                  "'");
    }
  }
}

}  // namespace

void Options::Validate(bool strategy_was_set, bool strategy_is_known) const {
  if (!strategy_is_known) {
    CheckStrategy("allocator_strategy", allocator_strategy, kAutoStrategy);
  }
  CheckIpc(*this);
  CheckAliases(*this, strategy_was_set);
  CheckHost(*this);
  host.Validate();
  if (alloc_fill_value < -1 || alloc_fill_value > 255) {
    throw std::invalid_argument(
        "alloc_fill_value: " + std::to_string(alloc_fill_value) +
        " is not a byte (0 to 255) or -1");
  }
  if (init_allocated_mem && alloc_fill_value >= 0 &&
      alloc_fill_value != kInitByte) {
    throw std::invalid_argument(
        "init_allocated_mem contradicts alloc_fill_value=" +
        std::to_string(alloc_fill_value) +
        ": it means alloc_fill_value=" + std::to_string(kInitByte));
  }
  const StrategyOptions strategies = strategy.ByType();
  CheckStrategyOptions(strategies);
  CheckDecoratorOptions(decorators);
  CheckSelectedStrategy(LimitedStrategy(Strategy()), strategies,
                        gpu_memory_limit_mb);
  for (const std::string& name : {host.strategy, host.pinned_strategy}) {
    CheckSelectedStrategy(name, strategy.ByType(/*is_on_host=*/true), 0);
  }
  CheckMebibytes("gpu_memory_limit_mb", gpu_memory_limit_mb);
  CheckFiles(decorators, platform);
  if (!decorators.fault.empty() &&
      (TraitsOf(Strategy()) & kPoolsInDriver) != 0) {
    throw std::invalid_argument(
        "strata_fault contradicts allocator_strategy=" + Strategy() +
        ": the driver's pool makes no request to the system; strata_sim_fault "
        "lets the driver refuse");
  }
}

std::string Options::Strategy() const {
  if (use_system_allocator) return "direct";
  if (use_cuda_malloc_async_allocator) return "cuda_malloc_async";
  return allocator_strategy;
}

std::optional<unsigned char> Options::FillByte() const {
  if (alloc_fill_value >= 0) {
    return static_cast<unsigned char>(alloc_fill_value);
  }
  if (init_allocated_mem) return kInitByte;
  return std::nullopt;
}

std::vector<OptionInfo> OptionTable() {
  std::vector<OptionInfo> table;
  for (const Row& row : Rows()) table.push_back(row.info);
  for (OptionInfo& option : RegisteredOptionTable()) {
    table.push_back(std::move(option));
  }
  return table;
}

std::vector<RemovedOption> RemovedOptions() {
  return {
#define STRATA_REMOVED_OPTION(Type, name, default_value, why) \
  RemovedOption{#name, #Type, #default_value, why},
#include "strata/facade/settings/removed_options.def"
#undef STRATA_REMOVED_OPTION
  };
}

std::string ToString(const Options& options) {
  Options in_force = options;
  in_force.allocator_strategy = options.Strategy();
  std::string text;
  for (const Row& row : Rows()) {
    text += (text.empty() ? "" : ",") + std::string(row.info.name) + "=" +
            row.show(in_force);
  }
  for (const OptionInfo& option : RegisteredOptionTable()) {
    text += "," + std::string(option.name) + "=" +
            QuotedIfNeeded(RegisteredText(options, option));
  }
  return text;
}

}  // namespace strata
