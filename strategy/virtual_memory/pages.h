#ifndef STRATA_STRATEGY_VIRTUAL_MEMORY_PAGES_H_
#define STRATA_STRATEGY_VIRTUAL_MEMORY_PAGES_H_

#include <cstddef>

#include "strata/platform/device.h"
#include "strata/strategy/blocks/block_list.h"
#include "strata/strategy/virtual_memory/address_range.h"

// Arithmetic of blocks and pages, shared by the files of this folder.
namespace strata::vmm {

// The largest multiple of kPageBytes that is at most `bytes`.
inline std::size_t WholePages(std::size_t bytes) {
  return bytes / kPageBytes * kPageBytes;
}

inline DevicePtr AddressOf(const std::byte* at) {
  return reinterpret_cast<DevicePtr>(at);
}

inline std::byte* EndOf(const Block& block) { return block.data + block.size; }

// The range of a block that lies in one.
inline AddressRange& RangeOf(const Block& block) {
  return *static_cast<AddressRange*>(block.chunk);
}

// Whether `block`, which may be null, is free or a hole.
inline bool IsInRun(const Block* block) {
  return BlockList::IsFree(block) || BlockList::IsHole(block);
}

}  // namespace strata::vmm

#endif  // STRATA_STRATEGY_VIRTUAL_MEMORY_PAGES_H_
