#include "strata/allocation/chunks/ended_pool.h"

#include <cstdint>

namespace strata {

EndedPool::EndedPool(ChunkPool& ended, ChunkPool& below)
    // No stream: an ended pool serves none.
    : ChunkHolder({.stream = Stream(), .layer = nullptr, .has_ended = true}),
      ended_(ended),
      below_(below) {
  below_.AddHolder(*this);
}

EndedPool::~EndedPool() { below_.RemoveHolder(*this); }

IdleInfo EndedPool::Idle(std::size_t /*fit_bytes*/) const noexcept {
  IdleInfo idle = ended_.market().Idle();
  idle.bytes = idle.bytes_with_lent;
  return idle;
}

std::size_t EndedPool::GiveBack(const GiveBackRequest& request) noexcept {
  return request.kind == GiveBackRequest::Kind::kAll
             ? ended_.market().GiveBackAll(SIZE_MAX)
             : 0;
}

}  // namespace strata
