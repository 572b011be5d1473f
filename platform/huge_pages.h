#ifndef STRATA_PLATFORM_HUGE_PAGES_H_
#define STRATA_PLATFORM_HUGE_PAGES_H_

#include <cstddef>

#include "strata/platform/require_cxx20.h"

namespace strata {

// What one entry of the processor's address cache covers, where the system
// serves memory by such pages: 2 MiB on x86-64 and, mostly, on AArch64.
inline constexpr std::size_t kHugePageBytes = std::size_t{1} << 21;

// Asks for huge pages in [data, data + bytes), both multiples of
// kHugePageBytes. Where the system has none to give, or gives them to nobody,
// the memory is as it was.
//
// Cost: one system call; the first touch of such a page then clears all of it.
// Source: hotpath.md §4; madvise(2), MADV_HUGEPAGE.
void AdviseHugePages(void* data, std::size_t bytes) noexcept;

}  // namespace strata

#endif  // STRATA_PLATFORM_HUGE_PAGES_H_
