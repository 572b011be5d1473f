#include "strata/allocation/ended_pool.h"

#include <cstdint>

namespace strata {

EndedPool::EndedPool(ChunkPool& ended, ChunkPool& below)
    : ended_(ended), below_(below) {
  below_.AddHolder(*this);
}

EndedPool::~EndedPool() { below_.RemoveHolder(*this); }

std::size_t EndedPool::GiveBackAll() noexcept {
  return ended_.GiveBackAll(SIZE_MAX);
}

}  // namespace strata
