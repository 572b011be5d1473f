#include "strata/platform/huge_pages.h"

#include <sys/mman.h>

namespace strata {

void AdviseHugePages(void* data, std::size_t bytes) noexcept {
  // It is advice: a kernel without huge pages refuses it.
  madvise(data, bytes, MADV_HUGEPAGE);
}

}  // namespace strata
