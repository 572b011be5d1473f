#include "strata/strategy/bfc/limits.h"

#include <algorithm>
#include <stdexcept>
#include <string>

#include "strata/base/log.h"
#include "strata/base/parse_number.h"
#include "strata/base/size.h"
#include "strata/strategy/option_bytes.h"

namespace strata {
namespace {

constexpr double kMostFraction = 100;

[[noreturn]] void BadFraction(std::string_view text) {
  throw std::invalid_argument(
      "bfc_memory_fraction: '" + std::string(text) +
      "' is not a fraction from 0 to 100 such as 0.75, nor 0.75+ or 0.75-0.85");
}

// Parses all of `text`, a part of `whole`. Refuses "1e-3", because its dash
// looks like a range.
double ParsePart(std::string_view text, std::string_view whole) {
  const auto value = ParseNumber<double>(text, std::chars_format::fixed);
  if (!value || !(*value >= 0) || *value > kMostFraction) BadFraction(whole);
  return *value;
}

std::size_t PartOf(std::size_t bytes, double fraction) {
  return static_cast<std::size_t>(static_cast<double>(bytes) * fraction);
}

// The meaning of a fraction of 0.
std::size_t AllButSystemMemory(const BfcDeviceMemory& memory) {
  const std::size_t kept =
      MinSystemMemory(memory.free_bytes, memory.compute_major);
  return kept < memory.free_bytes ? memory.free_bytes - kept
                                  : memory.free_bytes;
}

}  // namespace

BfcFlags OnHost(const BfcFlags& options) {
  const BfcFlags defaults;
  BfcFlags result = options;
  result.bfc_allow_growth = defaults.bfc_allow_growth;
  result.bfc_two_ended = defaults.bfc_two_ended;
  result.bfc_memory_limit_bytes = defaults.bfc_memory_limit_bytes;
  result.bfc_memory_fraction = defaults.bfc_memory_fraction;
  result.bfc_system_memory_in_mb = defaults.bfc_system_memory_in_mb;
  return result;
}

BfcFraction BfcFraction::Parse(std::string_view text) {
  BfcFraction fraction;
  const std::size_t dash = text.find('-', 1);
  if (!text.empty() && text.back() == '+') {
    fraction.start = ParsePart(text.substr(0, text.size() - 1), text);
    fraction.most = 1.0;
  } else if (dash != std::string_view::npos) {
    fraction.start = ParsePart(text.substr(0, dash), text);
    fraction.most = ParsePart(text.substr(dash + 1), text);
  } else {
    fraction.start = fraction.most = ParsePart(text, text);
    return fraction;
  }
  // 0 means a rule, which cannot grow.
  if (!(fraction.start > 0) || fraction.start > fraction.most) {
    BadFraction(text);
  }
  return fraction;
}

std::size_t MinSystemMemory(std::size_t free_bytes, int compute_major) {
  if (free_bytes < Gibibytes(2)) return Mebibytes(225);
  if (compute_major == 0) {
    return std::max(Mebibytes(300), PartOf(free_bytes, 0.05));
  }
  if (compute_major <= 6) return Mebibytes(500);
  if (compute_major == 7) return Mebibytes(1050);
  if (compute_major == 8) return Mebibytes(1536);
  return Mebibytes(1800);
}

BfcMemoryLimit ResolveBfcLimit(const BfcFlags& options,
                               const BfcDeviceMemory& memory) {
  const std::size_t system = Mebibytes(options.bfc_system_memory_in_mb);
  if (system != 0 && system <= memory.free_bytes) {
    const std::size_t rest = memory.free_bytes - system;
    return {rest, rest};
  }
  STRATA_LOG_IF(Warning, system != 0)
      << "bfc_system_memory_in_mb: " << HumanBytes(system)
      << " cannot be left to the system: only " << HumanBytes(memory.free_bytes)
      << " are free. It is ignored.";
  if (options.bfc_memory_fraction.empty()) {
    return {memory.total_bytes, memory.total_bytes};
  }
  BfcFraction fraction = BfcFraction::Parse(options.bfc_memory_fraction);
  if (fraction.most == 0) {
    const std::size_t rest = AllButSystemMemory(memory);
    return {rest, rest};
  }
  if (!memory.is_managed) {
    fraction.start = std::min(fraction.start, 1.0);
    fraction.most = std::min(fraction.most, 1.0);
  }
  return {PartOf(memory.total_bytes, fraction.start),
          PartOf(memory.total_bytes, fraction.most)};
}

void CheckBfcLimits(const BfcFlags& options) {
  const std::uint64_t system_mb = options.bfc_system_memory_in_mb;
  CheckMebibytes("bfc_system_memory_in_mb", system_mb);
  if (options.bfc_memory_fraction.empty()) return;
  const BfcFraction fraction = BfcFraction::Parse(options.bfc_memory_fraction);
  if (system_mb != 0 && fraction.most > 0) {
    throw std::invalid_argument(
        "bfc_memory_fraction contradicts bfc_system_memory_in_mb: each sets "
        "the memory that bfc may have");
  }
}

void CheckBfcLimits(const BfcFlags& options, const Caps& caps) {
  CheckBfcLimits(options);
  if (options.bfc_memory_fraction.empty() ||
      BfcFraction::Parse(options.bfc_memory_fraction).most <= 1) {
    return;
  }
  const std::string complaint =
      "bfc_memory_fraction: '" + options.bfc_memory_fraction + "' is above 1: ";
  if (!caps.managed_memory) {
    throw std::invalid_argument(complaint + "the device has no managed memory");
  }
  if (caps.compute_major != 0 && caps.compute_major < 6) {
    throw std::invalid_argument(
        complaint + "a device of compute capability " +
        std::to_string(caps.compute_major) +
        " does not support managed memory beyond its own (6 does)");
  }
}

}  // namespace strata
