#ifndef STRATA_TESTS_FUZZ_STRATEGY_PROGRAM_H_
#define STRATA_TESTS_FUZZ_STRATEGY_PROGRAM_H_

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "strata/tests/testing/models/facade_model.h"
#include "strata/tests/testing/models/facade_settings.h"

namespace strata {

// Runs the operations that `bytes` encode on a facade with `strategy`, and
// compares it with the naive model after each one. The first byte selects the
// settings, the second one selects whether device calls fail; the rest are
// operations. A difference is a failed expectation.
inline void RunStrategyProgram(const std::string& strategy,
                               std::string_view bytes) {
  if (bytes.size() < 3) return;
  const std::vector<std::string> settings = FacadeSettings(strategy);
  const auto first = static_cast<unsigned char>(bytes[0]);
  FacadeModelOptions options;
  options.facade = "allocator_strategy=" + strategy + " " +
                   settings[first % settings.size()];
  options.has_faults = static_cast<unsigned char>(bytes[1]) % 4 == 1;
  options.bytes = bytes.substr(2);
  FacadeModel model(options);
  std::size_t steps = 0;
  while (!model.exhausted()) {
    if (options.has_faults && ++steps % 8 == 0) model.AddFault();
    model.Step();
  }
  model.ClearFaults();
  model.FreeEverything();
  model.ExpectUsable();
  model.FreeEverything();
  model.Finish();
}

}  // namespace strata

#endif  // STRATA_TESTS_FUZZ_STRATEGY_PROGRAM_H_
