#include "strata/facade/settings/host_strategy.h"

#include <algorithm>
#include <cctype>
#include <optional>
#include <stdexcept>
#include <string_view>

#include "strata/base/parse_number.h"
#include "strata/base/size.h"

namespace strata {
namespace {

constexpr std::string_view kAuto = "auto";

// TensorFlow's defaults, in MiB (tf_bfc.md §1j).
constexpr std::uint64_t kDefaultCpuLimit = std::uint64_t{1} << 16;
constexpr std::uint64_t kDefaultPinnedLimit = std::uint64_t{1} << 17;
constexpr std::uint64_t kMostMebibytes = std::uint64_t{1} << 43;

[[noreturn]] void BadVariable(const char* name, std::string_view value,
                              const char* expected) {
  throw std::invalid_argument("environment variable " + std::string(name) +
                              ": '" + std::string(value) + "' is not " +
                              expected);
}

// Null if the variable is not set, or empty.
const char* ValueOf(const EnvironmentLookup& environment, const char* name) {
  const char* value = environment(name);
  return value == nullptr || *value == '\0' ? nullptr : value;
}

// "0", "1", "true" or "false", in any case.
bool BoolOf(const EnvironmentLookup& environment, const char* name,
            bool otherwise) {
  const char* value = ValueOf(environment, name);
  if (value == nullptr) return otherwise;
  std::string text = value;
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) {
    return static_cast<char>(std::tolower(c));
  });
  if (text == "1" || text == "true") return true;
  if (text == "0" || text == "false") return false;
  BadVariable(name, value, "true or false");
}

std::optional<std::uint64_t> MebibytesOf(const EnvironmentLookup& environment,
                                         const char* name) {
  const char* value = ValueOf(environment, name);
  if (value == nullptr) return std::nullopt;
  const auto number = ParseNumber<std::uint64_t>(value);
  if (!number || *number == 0 || *number > kMostMebibytes) {
    BadVariable(name, value, "a number of MiB");
  }
  return number;
}

void CheckFraction(const char* name, double fraction) {
  if (!(fraction >= 0 && fraction <= 1)) {
    throw std::invalid_argument(std::string(name) +
                                ": must be a fraction from 0 to 1");
  }
}

}  // namespace

void HostOptions::Validate() const {
  CheckFraction("strata_host_warn_large", warn_large_fraction);
  CheckFraction("strata_host_warn_total", warn_total_fraction);
}

HostStrategy StrategyOfHost(const HostOptions& options, bool is_numa_node,
                            bool has_visitors,
                            const EnvironmentLookup& environment) {
  HostStrategy result{options.strategy, options.limit_bytes,
                      "--strata_host_limit"};
  if (options.strategy == kAuto) {
    if (options.tf_environment &&
        BoolOf(environment, "TF_CPU_ALLOCATOR_USE_BFC", has_visitors)) {
      result.name = "bfc";
    } else {
      result.name = is_numa_node || has_visitors ? "pool" : "direct";
    }
  }
  if (options.tf_environment && result.name == "bfc" &&
      result.limit_bytes == 0) {
    result.limit_flag = "TF_CPU_BFC_MEM_LIMIT_IN_MB";
    result.limit_bytes = Mebibytes(
        MebibytesOf(environment, result.limit_flag).value_or(kDefaultCpuLimit));
  }
  return result;
}

HostStrategy StrategyOfPinned(const HostOptions& options, bool is_stream_safe,
                              const EnvironmentLookup& environment) {
  HostStrategy result{options.pinned_strategy, options.pinned_limit_bytes,
                      "--strata_pinned_limit"};
  if (options.use_auto_growth_pinned_allocator) {
    result.name = "auto_growth";
  } else if (options.pinned_strategy == kAuto) {
    result.name = is_stream_safe ? "auto_growth" : "direct";
  }
  if (options.tf_environment && result.limit_bytes == 0) {
    constexpr const char* kOlderName = "TF_CUDA_HOST_MEM_LIMIT_IN_MB";
    result.limit_flag = "TF_GPU_HOST_MEM_LIMIT_IN_MB";
    auto limit = MebibytesOf(environment, result.limit_flag);
    if (!limit && (limit = MebibytesOf(environment, kOlderName))) {
      result.limit_flag = kOlderName;
    }
    result.limit_bytes = Mebibytes(limit.value_or(kDefaultPinnedLimit));
  }
  return result;
}

}  // namespace strata
