#ifndef STRATA_ALLOCATION_BLOCK_FLAGS_H_
#define STRATA_ALLOCATION_BLOCK_FLAGS_H_

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "strata/allocation/allocation.h"

namespace strata {

// Flags of a block, which a memory map may read at any time. Several threads
// may mark a live one at once; who allocates or frees it has it alone.

inline unsigned FlagsOf(const Block& block) noexcept {
  // There is no reference to a constant.
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

// Whether it is live and nothing else is to be known of it: no mark, no offset.
// By who has the block alone.
inline bool IsPlain(const Block& block) noexcept {
  return FlagsOf(block) == kBlockLive;
}

// By who has the block alone.
inline void SetFlags(Block& block, unsigned flags) noexcept {
  std::atomic_ref(block.flags)
      .store(static_cast<std::uint8_t>(flags), std::memory_order_relaxed);
}

// Whether it is handed out. By who has the block alone: no atomic operation, as
// that waits for a line which may be far away.
inline void SetLive(Block& block, bool is_live) noexcept {
  const unsigned others = FlagsOf(block) & ~unsigned{kBlockLive};
  SetFlags(block, others | (is_live ? unsigned{kBlockLive} : 0));
}

// Has a live block begin so far behind its start. By who has it alone.
inline void SetOffset(Block& block, std::size_t bytes) noexcept {
  block.offset_units =
      static_cast<std::uint16_t>(bytes / Block::kOffsetUnitBytes);
  const unsigned flag = bytes != 0 ? unsigned{kBlockOffset} : 0;
  SetFlags(block, (FlagsOf(block) & ~unsigned{kBlockOffset}) | flag);
}

}  // namespace strata

#endif  // STRATA_ALLOCATION_BLOCK_FLAGS_H_
