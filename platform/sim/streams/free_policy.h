#ifndef STRATA_PLATFORM_SIM_STREAMS_FREE_POLICY_H_
#define STRATA_PLATFORM_SIM_STREAMS_FREE_POLICY_H_

#include <cstdint>
#include <string>

#include "strata/base/require_cxx20.h"

namespace strata::sim {

// Decides whether a call that frees memory at once first waits for the device's
// work (the option strata_sim_free). "sync": it waits, as most drivers do.
// "nosync": it does not; a program must work with this too. "seeded": chosen
// per call.
//
// Threads: externally synchronised.
// Source: cuda_semantics.md H3, H5, D11.
class FreePolicy {
 public:
  // Errors: std::invalid_argument that names the option and its values.
  FreePolicy(const std::string& text, std::uint64_t seed);

  // True if the current call waits.
  bool Waits();

 private:
  enum class Kind { kSync, kNoSync, kSeeded };

  static Kind Parse(const std::string& text);

  const Kind kind_;
  std::uint64_t random_state_;
};

}  // namespace strata::sim

#endif  // STRATA_PLATFORM_SIM_STREAMS_FREE_POLICY_H_
