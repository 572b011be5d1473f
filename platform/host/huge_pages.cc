#include "strata/platform/host/huge_pages.h"

#include <sys/mman.h>

namespace strata {

void AdviseHugePages(void* data, std::size_t bytes) noexcept {
  // The result is ignored: a kernel without huge pages refuses the advice.
  madvise(data, bytes, MADV_HUGEPAGE);
}

}  // namespace strata
