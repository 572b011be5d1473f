#include "strata/strategy/bfc/options.h"

#include <stdexcept>
#include <string>

namespace strata {
namespace {

// Which of two values an option has.
template <class Value>
Value Choose(const char* option, const std::string& text, const char* first,
             Value first_value, const char* second, Value second_value) {
  if (text == first) return first_value;
  if (text == second) return second_value;
  throw std::invalid_argument(std::string(option) + ": unknown value '" + text +
                              "' (known: " + first + ", " + second + ")");
}

}  // namespace

BfcOptions ReadBfcOptions(const StrategyOptions& options) {
  BfcOptions bfc;
  bfc.allow_growth = options.bfc_allow_growth;
  bfc.garbage_collection = options.bfc_garbage_collection;
  bfc.coalesce_regions = options.bfc_coalesce_regions;
  bfc.fragmentation_fraction = options.bfc_fragmentation_fraction;
  bfc.memory_limit_bytes = options.bfc_memory_limit_bytes;
  bfc.keep_annotations = options.bfc_keep_annotations;
  bfc.placement = Choose("bfc_placement", options.bfc_placement, "compat",
                         BfcPlacement::kCompat, "fast", BfcPlacement::kFast);
  bfc.backpedal = Choose("bfc_backpedal", options.bfc_backpedal, "always",
                         BfcBackpedal::kAlways, "once", BfcBackpedal::kOnce);
  if (!(bfc.fragmentation_fraction >= 0 && bfc.fragmentation_fraction <= 1)) {
    throw std::invalid_argument(
        "bfc_fragmentation_fraction: must be from 0 to 1");
  }
  if (options.bfc_timestamps) {
    if (bfc.placement == BfcPlacement::kFast) {
      throw std::invalid_argument(
          "bfc_timestamps contradicts bfc_placement=fast: that index does not "
          "search by the time of the free");
    }
    bfc.counter = std::make_shared<SharedCounter>();
  }
  return bfc;
}

}  // namespace strata
