#include "strata/allocation/hit/hit_state.h"

#include <memory>

namespace strata {

constinit const std::atomic<std::uint32_t> HitState::kNeverPlain{1};

void HitState::Begin(std::size_t max_block_bytes, std::size_t granule_bytes,
                     std::uint8_t searches) {
  counts = UseCounts();
  attention = &kNeverPlain;
  std::destroy_at(&cache);
  std::construct_at(&cache, max_block_bytes, granule_bytes, searches);
}

}  // namespace strata
