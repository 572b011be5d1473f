#ifndef STRATA_ALLOCATION_REQUEST_H_
#define STRATA_ALLOCATION_REQUEST_H_

#include <cstddef>
#include <cstdint>
#include <functional>

#include "strata/platform/require_cxx20.h"

namespace strata {

// How a request may be met; bits of Request::flags.
enum RequestFlags : std::uint32_t {
  // Fail at once when memory is exhausted: the Reclaimer is not asked.
  kNoRetry = 1U << 0,
  // Serve from what the strategy holds; never ask the system for more.
  kNoGrowth = 1U << 1,
  // The block will outlive its neighbours. A strategy places such blocks beside
  // each other, so that they do not pin memory that others could give back.
  kLongLived = 1U << 2,
  // The block is a handle of physical memory of its own, whole pages, which no
  // other block shares while it lives: for registration with a network card.
  kOneHandle = 1U << 3,
  // The block lies in memory that cudaIpcGetMemHandle knows.
  kLegacyIpc = 1U << 4,
  // The caller records the allocation in the log itself (allocation_log.h).
  kWillBeLogged = 1U << 8,
  // Serve from the upper end of a pool that has two (--bfc_two_ended).
  kUpperEnd = 1U << 9,
};

// What a caller asks of an Allocator.
struct Request {
  std::size_t bytes = 0;      // 0 gives an Allocation of null and size 0
  std::size_t alignment = 0;  // of the address: a power of two; 0: the layer's
  std::uint32_t flags = 0;    // RequestFlags
  // Only memory freed before this count of the strategy's timestamp counter
  // may be reused; 0: any. Strategies without such a counter have no memory
  // with a later count and ignore it.
  std::uint64_t freed_before = 0;
  // If not null, asked before every attempt for the count to use as
  // `freed_before`: more memory may have become safe since the last one. Must
  // not throw. Layers never see it.
  const std::function<std::uint64_t()>* freed_by = nullptr;
  // How much of `bytes` a layer added, so that the address can be moved.
  std::size_t padding_bytes = 0;

  // What the caller of that layer asked for.
  std::size_t unpadded_bytes() const { return bytes - padding_bytes; }
};

// The largest Request::alignment that any chain serves.
inline constexpr std::size_t kMaxAlignment = std::size_t{16} << 20;

}  // namespace strata

#endif  // STRATA_ALLOCATION_REQUEST_H_
