#include "strata/facade/settings/auto_strategy.h"

#include <algorithm>
#include <utility>

#include "strata/strategy/auto_growth/options.h"

namespace strata {
namespace {

// The name of an option of auto_growth that differs from its default; null if
// there is none.
const char* OptionOfChunks(const AutoGrowthOptions& options) {
  const AutoGrowthOptions defaults;
#define STRATA_OWN_OPTION(Type, name, member, default_value, help) \
  if (options.member != defaults.member) return #name;
#include "strata/strategy/auto_growth/options.def"
#undef STRATA_OWN_OPTION
  return nullptr;
}

}  // namespace

std::vector<MappedMemoryReport> MappedMemoryReports() {
  return {
#define STRATA_MAPPED_MEMORY(major, minor, date) \
  MappedMemoryReport{major, minor, date},
#include "strata/facade/settings/mapped_memory_reports.def"
#undef STRATA_MAPPED_MEMORY
  };
}

StrategyChoice ChooseStrategy(const Options& options, const Caps& caps,
                              const std::vector<MappedMemoryReport>& reports) {
  const auto chunks = [](std::string why) {
    return StrategyChoice{"auto_growth", std::move(why)};
  };
  const auto pages = [](std::string why) {
    return StrategyChoice{"virtual_memory", std::move(why)};
  };
  if (options.ipc == "legacy") {
    return chunks(
        "--strata_ipc=legacy asks for memory that cudaIpc handles can name");
  }
  if (options.use_cuda_managed_memory) {
    return chunks("--use_cuda_managed_memory asks for memory without pages");
  }
  if (const char* const option = OptionOfChunks(options.strategy)) {
    return chunks(std::string("--") + option + " is an option of auto_growth");
  }
  if (!caps.virtual_memory) {
    return chunks("the device has no virtual memory");
  }
  if (caps.simulated) return pages("the device is simulated");
  const std::string capability = std::to_string(caps.compute_major) + "." +
                                 std::to_string(caps.compute_minor);
  const auto report = std::find_if(
      reports.begin(), reports.end(), [&](const MappedMemoryReport& row) {
        return row.compute_major == caps.compute_major &&
               row.compute_minor == caps.compute_minor;
      });
  if (report != reports.end()) {
    return pages(std::string("docs/gpu/") + report->date +
                 ".md shows that mapped memory works on GPUs of compute "
                 "capability " +
                 capability);
  }
  return chunks(
      "no report in docs/gpu shows yet that mapped memory works on GPUs of "
      "compute capability " +
      capability);
}

std::string StrategyOn(const Options& options, const Caps& caps,
                       PlaceKind kind) {
  std::string name = options.Strategy();
  if (name != kAutoStrategy) return name;
  return kind == PlaceKind::kManaged ? "auto_growth"
                                     : ChooseStrategy(options, caps).name;
}

}  // namespace strata
