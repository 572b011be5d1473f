// Trains a small network twice with memory from the facade: eagerly, and as a
// captured graph that is launched again and again. A second stream copies the
// next batch in the meantime. Both trainings must end with the same bits. The
// checker of the simulated device must have found no unordered use of memory.
//
// usage: eager_mlp [STEPS] [any flag of `strata info`]

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <optional>
#include <stdexcept>
#include <vector>

#include "strata/examples/arguments.h"
#include "strata/examples/eager_mlp/training.h"
#include "strata/facade/allocator_facade.h"
#include "strata/facade/flags.h"
#include "strata/platform/device.h"
#include "strata/platform/platform.h"

namespace {

using eager_mlp::Trained;

// Makes simulated devices store bytes and check calls, unless the command line
// or the environment says otherwise.
strata::Options OptionsOfExample() {
  setenv("FLAGS_strata_sim_data", "backed", /*overwrite=*/0);
  setenv("FLAGS_strata_sim_check_hazards", "report", /*overwrite=*/0);
  return strata::OptionsFromFlags();
}

bool SameBits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() &&
         std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

void PrintLosses(const Trained& eager, const Trained& captured) {
  std::printf("%6s %12s %12s\n", "step", "eager", "captured");
  const std::size_t steps = eager.losses.size();
  for (std::size_t step = 0; step < steps; ++step) {
    if (step % 10 != 0 && step + 1 != steps) continue;
    std::printf("%6zu %12.6f %12.6f\n", step,
                static_cast<double>(eager.losses[step]),
                static_cast<double>(captured.losses[step]));
  }
}

// Prints the results. Returns true if they are correct.
bool Judge(const Trained& eager, const Trained& captured,
           std::optional<std::uint64_t> hazards) {
  const bool learns = eager.losses.back() < eager.losses.front();
  const bool same = SameBits(eager.parameters, captured.parameters) &&
                    SameBits(eager.losses, captured.losses);
  std::printf("the loss %s\n", learns ? "fell" : "did not fall");
  std::printf("%zu parameters, eager and captured: %s\n",
              eager.parameters.size(), same ? "bit-equal" : "DIFFERENT");
  if (hazards) {
    std::printf("hazards: %llu\n", static_cast<unsigned long long>(*hazards));
  } else {
    std::printf("hazards: not checked on this device\n");
  }
  return learns && same && hazards.value_or(0) == 0;
}

int Run(int steps) {
  strata::AllocatorFacade facade(OptionsOfExample());
  if (facade.platform().device(0).caps().phantom_memory) {
    throw std::invalid_argument(
        "nothing can be computed in phantom memory: see --strata_sim_data");
  }
  const Trained eager = eager_mlp::TrainEager(facade, steps);
  const Trained captured = eager_mlp::TrainCaptured(facade, steps);
  PrintLosses(eager, captured);
  facade.EmptyCache();
  return Judge(eager, captured, facade.platform().hazard_count()) ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const std::optional<int> given =
        OnlyNumber(strata::ParseCommandLine({argv + 1, argv + argc}), 50);
    const int steps = given.value_or(0);
    if (steps < 10) {
      std::fprintf(stderr, "usage: eager_mlp [STEPS, at least 10] [FLAGS]\n");
      return 2;
    }
    return Run(steps);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "eager_mlp: %s\n", error.what());
    return 1;
  }
}
