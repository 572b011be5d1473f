#ifndef STRATA_STRATEGY_VIRTUAL_MEMORY_ADDRESS_RANGE_H_
#define STRATA_STRATEGY_VIRTUAL_MEMORY_ADDRESS_RANGE_H_

#include <cstddef>
#include <cstdint>
#include <memory>

#include "strata/allocation/allocation.h"
#include "strata/platform/device.h"
#include "strata/strategy/blocks/block_list.h"

namespace strata {

// The granule of mappings: sizes and addresses of handles are multiples of it
// on every known device (cuda_semantics.md V3).
inline constexpr std::size_t kPageBytes = std::size_t{2} << 20;

// A handle of physical memory, and the one place where blocks use it.
struct PageHandle {
  MemHandle memory;
  std::size_t bytes = 0;
  std::byte* base = nullptr;
  // Number of exports of the handle, and of threads that change its access.
  // Unless it is 0, the handle does not move and is not released.
  std::uint32_t pins = 0;
  bool is_shareable = false;  // Created for export.
  // Set while DetachFree searches its retired addresses.
  bool is_leaving = false;
  // Number of its retired addresses that a thread has taken to unmap them. The
  // handle is not released meanwhile.
  std::uint32_t unmaps = 0;
  // Version of the PeerAccess grants at mapping.
  std::uint64_t access_version = 0;
  PageHandle* next =
      nullptr;  // Next handle that the driver refused to release.

  std::byte* end() const { return base + bytes; }
};

// Reserved addresses; a strategy maps parts of them.
//
// Model: the range is a Chunk. Its blocks tile all addresses; blocks of
//   BlockList::kHolePool are not mapped. The last page is never mapped, so a
//   block is never the whole chunk. A table has the handle of each page.
// Units: bytes.
// Threads: not thread-safe. The strategy's lock guards it.
// Lifetime: the device outlives it. Nothing is mapped when it is destroyed.
class AddressRange : public Chunk {
 public:
  // `bytes` is a multiple of kPageBytes. Null if the device or the host
  // refuses.
  static std::unique_ptr<AddressRange> Reserve(Device& device, Place place,
                                               std::size_t bytes) noexcept;
  AddressRange(const AddressRange&) = delete;
  AddressRange& operator=(const AddressRange&) = delete;
  // Pool of the arena that uses the range; set by its strategy.
  std::uint8_t pool = 0;

  // On an error the addresses are still reserved.
  Status Free() noexcept;
  // Leaks the addresses unless Free succeeded.
  ~AddressRange();

  std::byte* begin() const { return memory->block()->data; }
  std::size_t size_bytes() const { return memory->size(); }
  // The end of the mappable addresses.
  std::byte* map_end() const { return begin() + size_bytes() - kPageBytes; }

  // The handle of the page that contains `at`; null if nothing is mapped, or if
  // the page is retired and its handle is not known. The handle of a retired
  // page may be mapped elsewhere: its `base` is then outside the page.
  PageHandle* HandleAt(const std::byte* at) const { return pages_[PageOf(at)]; }
  // Sets the handle of the pages from `base` on; null: not mapped.
  void SetHandle(const std::byte* base, std::size_t bytes, PageHandle* handle);

  // The first page boundary at or after `at`, and the last one at or before.
  std::byte* PageUp(std::byte* at) const;
  std::byte* PageDown(std::byte* at) const;

 private:
  explicit AddressRange(Device& device) : device_(device) {}
  std::size_t PageOf(const std::byte* at) const {
    return static_cast<std::size_t>(at - begin()) / kPageBytes;
  }

  Device& device_;
  std::unique_ptr<PageHandle*[]> pages_;
};

}  // namespace strata

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

#endif  // STRATA_STRATEGY_VIRTUAL_MEMORY_ADDRESS_RANGE_H_
