#ifndef STRATA_STRATEGY_VIRTUAL_MEMORY_ADDRESS_RANGE_H_
#define STRATA_STRATEGY_VIRTUAL_MEMORY_ADDRESS_RANGE_H_

#include <cstddef>
#include <cstdint>
#include <memory>

#include "strata/allocation/allocation.h"
#include "strata/platform/device.h"

namespace strata {

// The granule of mappings: sizes and addresses of handles are multiples of it
// on every known device (cuda_semantics.md V3).
inline constexpr std::size_t kPageBytes = std::size_t{2} << 20;

// A handle of physical memory and the one place where blocks use it.
struct PageHandle {
  MemHandle memory;
  std::size_t bytes = 0;
  std::byte* base = nullptr;
  // Exports that keep it where it is; also while its access is changed.
  std::uint32_t pins = 0;
  bool is_shareable = false;         // it was created for export
  std::uint64_t access_version = 0;  // of the PeerAccess that it is mapped with
  PageHandle* next = nullptr;  // of those that the driver refused to release

  std::byte* end() const { return base + bytes; }
};

// Reserved addresses of which a strategy maps parts.
//
// Model: the range is a Chunk whose blocks tile all its addresses; blocks of
//   BlockList::kHolePool are not mapped. The last page is never mapped, so a
//   block is never the whole chunk. A table names the handle behind each page.
// Units: bytes.
// Threads: none; the strategy's lock guards it.
// Lifetime: the device outlives it. Nothing is mapped when it is destroyed.
class AddressRange : public Chunk {
 public:
  // Reserves `bytes`, a multiple of kPageBytes, at `place`. Null if the device
  // or the host refuses. One device call.
  static std::unique_ptr<AddressRange> Reserve(Device& device, Place place,
                                               std::size_t bytes) noexcept;
  AddressRange(const AddressRange&) = delete;
  AddressRange& operator=(const AddressRange&) = delete;
  // Of the arena that uses it; set by its strategy.
  std::uint8_t pool = 0;

  // Frees the addresses; on an error they are still reserved. One device call.
  Status Free() noexcept;
  // Unless Free succeeded, the addresses are lost.
  ~AddressRange();

  std::byte* begin() const { return memory->block()->data; }
  std::size_t size_bytes() const { return memory->size(); }
  // The end of the addresses that can be mapped.
  std::byte* map_end() const { return begin() + size_bytes() - kPageBytes; }

  // The handle behind the page that holds `at`; null if nothing is mapped.
  PageHandle* HandleAt(const std::byte* at) const { return pages_[PageOf(at)]; }
  // Notes that `handle` is behind the pages from `base` on, or null for
  // nothing.
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
  // By page.
  std::unique_ptr<PageHandle*[]> pages_;
};

}  // namespace strata

#endif  // STRATA_STRATEGY_VIRTUAL_MEMORY_ADDRESS_RANGE_H_
