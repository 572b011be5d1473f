#include "strata/allocation/chunks/chunk_holder.h"

#include <algorithm>

namespace strata {

std::size_t ChunkHolder::GiveBackOneByOne(
    const GiveBackRequest& request) noexcept {
  const std::size_t least = std::max<std::size_t>(request.least_bytes, 1);
  std::size_t given = 0;
  while (given < request.bytes) {
    const std::size_t largest = Idle(/*fit_bytes=*/1).largest;
    if (largest < least) break;
    const std::size_t got =
        GiveBack({GiveBackRequest::Kind::kBestFit, largest});
    if (got == 0) break;
    given += got;
  }
  return given;
}

}  // namespace strata
