#include "strata/tools/peers/pytorch/pytorch_settings.h"

#include <algorithm>
#include <array>
#include <bit>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>

#include "strata/base/parse_number.h"
#include "strata/base/size.h"

namespace strata::peers {
namespace {

constexpr std::size_t kSmallestBlockBytes = 512;
constexpr std::size_t kLargeSegmentMebibytes = 20;

// Digits and one point: "0.8", ".5", "1".
std::optional<double> FractionOf(std::string_view text) {
  const bool has_digit =
      text.find_first_of("0123456789") != std::string_view::npos;
  const bool is_plain =
      text.find_first_not_of("0123456789.") == std::string_view::npos &&
      text.find('.') == text.rfind('.');
  if (!has_digit || !is_plain) return std::nullopt;
  return std::stod(std::string(text));
}

// The functions that read the value of a switch. Each returns the reason if it
// is wrong.
using Reason = const char*;

Reason ReadExpandable(std::string_view value, PytorchSettings& settings) {
  if (value != "True" && value != "False") return "is not True or False";
  settings.expandable_segments = value == "True";
  return nullptr;
}

Reason ReadMaxSplit(std::string_view value, PytorchSettings& settings) {
  const auto mebibytes = ParseNumber<std::size_t>(value);
  if (!mebibytes || *mebibytes <= kLargeSegmentMebibytes) {
    return "is not a number of MiB above 20";
  }
  settings.max_split_bytes =
      Mebibytes(std::min(*mebibytes, PytorchSettings::kUnlimited >> 20));
  return nullptr;
}

Reason ReadGarbageCollection(std::string_view value,
                             PytorchSettings& settings) {
  const auto fraction = FractionOf(value);
  if (!fraction || *fraction <= 0 || *fraction >= 1) {
    return "is not a number between 0 and 1";
  }
  settings.garbage_collection_threshold = *fraction;
  return nullptr;
}

Reason ReadMemoryFraction(std::string_view value, PytorchSettings& settings) {
  const auto fraction = FractionOf(value);
  if (!fraction || *fraction <= 0 || *fraction > 1) {
    return "is not a number above 0 and up to 1";
  }
  settings.memory_fraction = *fraction;
  return nullptr;
}

constexpr Reason kWrongDivisions =
    "is neither a power of two nor a list as [64:8,256:4,>:1]";

// One item of the list, "64:8" or ">:1". `last` is the interval of the item
// before it; nothing for the first item.
bool ReadInterval(std::string_view item, std::optional<std::size_t>& last,
                  PytorchSettings& settings) {
  const std::size_t colon = item.find(':');
  if (colon == std::string_view::npos) return false;
  auto& divisions = settings.power2_divisions;
  const auto value = ParseNumber<std::size_t>(item.substr(colon + 1));
  if (!value || (*value != 0 && !std::has_single_bit(*value))) return false;
  const auto fill = [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) divisions[i] = *value;
  };
  const std::string_view interval = item.substr(0, colon);
  if (interval == ">") {
    fill(last.value_or(0) + 1, divisions.size());
    return true;
  }
  const auto mebibytes = ParseNumber<std::size_t>(interval);
  if (!mebibytes || !std::has_single_bit(*mebibytes)) return false;
  const auto power = static_cast<std::size_t>(std::countr_zero(*mebibytes));
  const std::size_t index = std::min(power, divisions.size() - 1);
  // The first item also applies to the smaller intervals.
  fill(last ? index : 0, index + 1);
  last = index;
  return true;
}

Reason ReadDivisions(std::string_view value, PytorchSettings& settings) {
  if (!value.starts_with('[')) {
    const auto divisions = ParseNumber<std::size_t>(value);
    if (!divisions || !std::has_single_bit(*divisions)) return kWrongDivisions;
    settings.power2_divisions.fill(*divisions);
    return nullptr;
  }
  if (!value.ends_with(']')) return kWrongDivisions;
  std::string_view rest = value.substr(1, value.size() - 2);
  std::optional<std::size_t> last;
  while (true) {
    const std::size_t comma = rest.find(',');
    if (!ReadInterval(rest.substr(0, comma), last, settings)) {
      return kWrongDivisions;
    }
    if (comma == std::string_view::npos) return nullptr;
    rest.remove_prefix(comma + 1);
  }
}

struct Switch {
  std::string_view key;
  Reason (*read)(std::string_view value, PytorchSettings& settings);
};

constexpr std::array kSwitches = {
    Switch{"expandable_segments", &ReadExpandable},
    Switch{"garbage_collection_threshold", &ReadGarbageCollection},
    Switch{"max_split_size_mb", &ReadMaxSplit},
    Switch{"per_process_memory_fraction", &ReadMemoryFraction},
    Switch{"roundup_power2_divisions", &ReadDivisions},
};

[[noreturn]] void Refuse(std::string_view what, const std::string& why) {
  throw std::invalid_argument("peer:pytorch: '" + std::string(what) + "' " +
                              why);
}

void ReadSwitch(std::string_view item, std::set<std::string_view>& known,
                PytorchSettings& settings) {
  const std::size_t equals = item.find('=');
  if (equals == std::string_view::npos) Refuse(item, "is not KEY=VALUE");
  const std::string_view key = item.substr(0, equals);
  const auto found =
      std::find_if(kSwitches.begin(), kSwitches.end(),
                   [&](const Switch& one) { return one.key == key; });
  if (found == kSwitches.end()) {
    std::string keys;
    for (const Switch& one : kSwitches) {
      keys.append(keys.empty() ? "" : ", ").append(one.key);
    }
    Refuse(key, "is not a switch (known: " + keys + ")");
  }
  if (!known.insert(key).second) Refuse(key, "is given twice");
  const Reason wrong = found->read(item.substr(equals + 1), settings);
  if (wrong != nullptr) Refuse(item, wrong);
}

// The end of the first item of `text`: a comma in brackets belongs to the item.
std::size_t EndOfItem(std::string_view text) {
  bool is_in_list = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '[') is_in_list = true;
    if (text[i] == ']') is_in_list = false;
    if (text[i] == ',' && !is_in_list) return i;
  }
  return std::string_view::npos;
}

}  // namespace

std::size_t PytorchSettings::RoundedBytes(std::size_t bytes) const {
  const std::size_t floor = std::bit_floor(bytes);
  const auto power = static_cast<std::size_t>(std::countr_zero(floor));
  constexpr std::size_t kFirstPower = 20;  // of 1 MiB
  const std::size_t index =
      std::min(power > kFirstPower ? power - kFirstPower : 0, kIntervals - 1);
  const std::size_t divisions = power2_divisions[index];
  if (divisions > 1 && bytes > kSmallestBlockBytes * divisions) {
    return AlignUp(bytes, floor / divisions);
  }
  return AlignUp(bytes, kSmallestBlockBytes);
}

PytorchSettings WithPytorchSwitches(PytorchSettings settings,
                                    std::string_view text) {
  std::set<std::string_view> known;
  while (true) {
    const std::size_t end = EndOfItem(text);
    ReadSwitch(text.substr(0, end), known, settings);
    if (end == std::string_view::npos) return settings;
    text.remove_prefix(end + 1);
  }
}

}  // namespace strata::peers
