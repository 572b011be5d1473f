#ifndef STRATA_ALLOCATION_BLOCK_FLAGS_H_
#define STRATA_ALLOCATION_BLOCK_FLAGS_H_

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "strata/allocation/allocation.h"

namespace strata {

// Functions for the flags of a block. A memory map may read them at any time.
// Several threads may mark a live block at once. The thread that allocates or
// frees a block has exclusive access.

inline unsigned FlagsOf(const Block& block) noexcept {
  // std::atomic_ref does not accept a constant object.
  auto& flags = const_cast<std::uint8_t&>(block.flags);  // NOLINT
  return std::atomic_ref(flags).load(std::memory_order_relaxed);
}

inline bool HasFlag(const Block& block, BlockFlags flag) noexcept {
  return (FlagsOf(block) & flag) != 0;
}

inline void AddFlag(Block& block, BlockFlags flag) noexcept {
  std::atomic_ref(block.flags).fetch_or(flag, std::memory_order_relaxed);
}

inline void RemoveFlag(Block& block, BlockFlags flag) noexcept {
  std::atomic_ref(block.flags)
      .fetch_and(static_cast<std::uint8_t>(~flag), std::memory_order_relaxed);
}

// True if the block is live and has no mark and no offset. Needs exclusive
// access.
inline bool IsPlain(const Block& block) noexcept {
  return FlagsOf(block) == kBlockLive;
}

// Needs exclusive access.
inline void SetFlags(Block& block, unsigned flags) noexcept {
  std::atomic_ref(block.flags)
      .store(static_cast<std::uint8_t>(flags), std::memory_order_relaxed);
}

// Sets or clears kBlockLive. Needs exclusive access. A plain store, because an
// atomic exchange waits for a cache line that may be far away.
inline void SetLive(Block& block, bool is_live) noexcept {
  const unsigned others = FlagsOf(block) & ~unsigned{kBlockLive};
  SetFlags(block, others | (is_live ? unsigned{kBlockLive} : 0));
}

// Sets the offset of a live block in bytes. Needs exclusive access.
inline void SetOffset(Block& block, std::size_t bytes) noexcept {
  block.offset_units =
      static_cast<std::uint16_t>(bytes / Block::kOffsetUnitBytes);
  const unsigned flag = bytes != 0 ? unsigned{kBlockOffset} : 0;
  SetFlags(block, (FlagsOf(block) & ~unsigned{kBlockOffset}) | flag);
}

}  // namespace strata

#endif  // STRATA_ALLOCATION_BLOCK_FLAGS_H_
