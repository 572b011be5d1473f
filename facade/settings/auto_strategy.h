#ifndef STRATA_FACADE_SETTINGS_AUTO_STRATEGY_H_
#define STRATA_FACADE_SETTINGS_AUTO_STRATEGY_H_

#include <string>
#include <string_view>
#include <vector>

#include "strata/facade/options.h"
#include "strata/platform/device.h"
#include "strata/platform/place.h"

namespace strata {

// The value of --allocator_strategy with which ChooseStrategy chooses.
inline constexpr std::string_view kAutoStrategy = "auto";

// A row of mapped_memory_reports.def.
struct MappedMemoryReport {
  int compute_major = 0;
  int compute_minor = 0;
  const char* date = "";  // date of docs/gpu/<date>.md
};

std::vector<MappedMemoryReport> MappedMemoryReports();

struct StrategyChoice {
  std::string name;  // name of a strategy
  std::string why;   // part of a sentence: "the device is simulated"
};

// The strategy for a device with `caps` if the options leave the choice.
//
// Model: auto_growth if one of these is true:
//   - strata_ipc=legacy, or use_cuda_managed_memory;
//   - an option of auto_growth differs from its default;
//   - the device has no virtual memory;
//   - it is a GPU of a compute capability that `reports` does not list.
//   Else virtual_memory.
StrategyChoice ChooseStrategy(
    const Options& options, const Caps& caps,
    const std::vector<MappedMemoryReport>& reports = MappedMemoryReports());

// The strategy that serves memory of `kind` on a device with `caps`:
// Options::Strategy() or, if that is auto, the result of ChooseStrategy.
// Managed memory has no pages: there auto is auto_growth.
std::string StrategyOn(const Options& options, const Caps& caps,
                       PlaceKind kind);

}  // namespace strata

#endif  // STRATA_FACADE_SETTINGS_AUTO_STRATEGY_H_
