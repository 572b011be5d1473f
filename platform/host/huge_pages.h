#ifndef STRATA_PLATFORM_HOST_HUGE_PAGES_H_
#define STRATA_PLATFORM_HOST_HUGE_PAGES_H_

#include <cstddef>

#include "strata/base/require_cxx20.h"

namespace strata {

// Bytes that one TLB entry covers where the system backs memory with such
// pages: 2 MiB on x86-64 and, mostly, on AArch64.
inline constexpr std::size_t kHugePageBytes = std::size_t{1} << 21;

// Asks for huge pages in [data, data + bytes), both multiples of
// kHugePageBytes. Where the system has no free huge page or does not offer
// them, nothing changes.
//
// Cost: one system call; the first touch of such a page then clears all of it.
// Source: hotpath.md §4; madvise(2), MADV_HUGEPAGE.
void AdviseHugePages(void* data, std::size_t bytes) noexcept;

}  // namespace strata

#endif  // STRATA_PLATFORM_HOST_HUGE_PAGES_H_
