#include "strata/platform/sim/streams/free_policy.h"

#include <stdexcept>

#include "strata/platform/sim/streams/random.h"

namespace strata::sim {
namespace {

// Separates this sequence from others with the same seed.
constexpr std::uint64_t kSeedOffset = 0xF4EE;

}  // namespace

FreePolicy::FreePolicy(const std::string& text, std::uint64_t seed)
    : kind_(Parse(text)), random_state_(seed + kSeedOffset) {}

FreePolicy::Kind FreePolicy::Parse(const std::string& text) {
  if (text == "sync") return Kind::kSync;
  if (text == "nosync") return Kind::kNoSync;
  if (text == "seeded") return Kind::kSeeded;
  throw std::invalid_argument("strata_sim_free: '" + text +
                              "' is no policy (known: sync, nosync, seeded)");
}

bool FreePolicy::Waits() {
  if (kind_ == Kind::kSeeded) return (NextRandom(&random_state_) & 1) == 0;
  return kind_ == Kind::kSync;
}

}  // namespace strata::sim
