#ifndef STRATA_ALLOCATION_REQUEST_H_
#define STRATA_ALLOCATION_REQUEST_H_

#include <cstddef>
#include <cstdint>
#include <functional>

#include "strata/base/require_cxx20.h"

namespace strata {

// Rules for how a request may be met; bits of Request::flags.
enum RequestFlags : std::uint32_t {
  // Fail at once when memory is exhausted; do not run the Reclaimer.
  kNoRetry = 1U << 0,
  // Allocate from the chunks that the strategy holds; never grow.
  kNoGrowth = 1U << 1,
  // The block outlives its neighbours. A strategy places such blocks together,
  // so that they do not pin memory that could be released.
  kLongLived = 1U << 2,
  // The block is one handle of physical memory: whole pages that no other block
  // shares while it lives. Used to register memory with a network card.
  kOneHandle = 1U << 3,
  // The block lies in memory that cudaIpcGetMemHandle accepts.
  kLegacyIpc = 1U << 4,
  // The caller records the allocation in the log itself (allocation_log.h).
  kWillBeLogged = 1U << 8,
  // Serve from the upper end of a pool that has two (--bfc_two_ended).
  kUpperEnd = 1U << 9,
};

// A request to an Allocator.
struct Request {
  // 0 returns an Allocation with a null address and size 0
  std::size_t bytes = 0;
  // Alignment of the address: a power of two, or 0 for natural_alignment().
  std::size_t alignment = 0;
  std::uint32_t flags = 0;  // RequestFlags
  // Reuse only memory that was freed before this value of the strategy's
  // timestamp counter; 0: any memory. A strategy without such a counter ignores
  // it.
  std::uint64_t freed_before = 0;
  // If not null, called before every attempt for the value of `freed_before`,
  // because more memory may have become safe since the last attempt. Must not
  // throw. Layers never see it.
  const std::function<std::uint64_t()>* freed_by = nullptr;
  // Bytes of `bytes` that a layer added so that it can move the address.
  std::size_t padding_bytes = 0;

  // Bytes that the caller of that layer requested.
  std::size_t unpadded_bytes() const { return bytes - padding_bytes; }
};

// The largest Request::alignment that any chain serves.
inline constexpr std::size_t kMaxAlignment = std::size_t{16} << 20;

}  // namespace strata

#endif  // STRATA_ALLOCATION_REQUEST_H_
