#ifndef STRATA_PLATFORM_SIM_FREE_POLICY_H_
#define STRATA_PLATFORM_SIM_FREE_POLICY_H_

#include <cstdint>
#include <string>

#include "strata/platform/require_cxx20.h"

namespace strata {

// Whether a call that frees memory at once waits for the device's work first
// (the option strata_sim_free): "sync", as drivers mostly do, "nosync", which
// nobody may rely on not to happen, or "seeded", now this and now that.
//
// Threads: externally synchronised.
// Source: cuda_semantics.md H3, H5, D11.
class FreePolicy {
 public:
  // Errors: std::invalid_argument naming the option and the values there are.
  FreePolicy(const std::string& text, std::uint64_t seed);

  // For the call that is made now.
  bool Waits();

 private:
  enum class Kind { kSync, kNoSync, kSeeded };

  static Kind Parse(const std::string& text);

  const Kind kind_;
  std::uint64_t random_state_;
};

}  // namespace strata

#endif  // STRATA_PLATFORM_SIM_FREE_POLICY_H_
