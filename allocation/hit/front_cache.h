#ifndef STRATA_ALLOCATION_HIT_FRONT_CACHE_H_
#define STRATA_ALLOCATION_HIT_FRONT_CACHE_H_

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "strata/allocation/allocation.h"
#include "strata/allocation/block_flags.h"

namespace strata {

// Keeps freed blocks whole, so that a request of the same size skips search,
// split and coalesce.
//
// Model: a set-associative table maps an exact size to a LIFO list of blocks. A
//   size enters the table after `searches` searches for it, and leaves it after
//   kSweep searches without a use. Cached blocks count as free. The strategy
//   calls TakeAll() before it reads its free index, grows, or fails.
// Threads: not thread-safe. The lock of the chain guards it.
// Cost: a hit or a free touches one line of the table and the line of the
//   block. 8 KiB. TakeAll() and TakeStale() visit 256 entries if any block is
//   cached.
// Source: hotpath.md §6 (second-touch admission, decay, flush before growth),
//   §7 (128 sets of 2).
class FrontCache {
 public:
  // Number of searches after which unused sizes are removed.
  static constexpr std::uint32_t kSweep = 1024;

  // Caches no blocks until Configure().
  FrontCache() = default;
  FrontCache(std::size_t max_block_bytes, std::size_t granule_bytes,
             std::uint8_t searches = 2) {
    Configure(max_block_bytes, granule_bytes, searches);
  }
  FrontCache(const FrontCache&) = delete;
  FrontCache& operator=(const FrontCache&) = delete;

  // Caches blocks of at most `max_block_bytes`; 0: caches none. A request is
  // rounded up to a multiple of `granule_bytes`, a power of two, 2 or more. It
  // gets a cached block of exactly that size. A size enters the table after
  // `searches` searches. Call it before any other function.
  void Configure(std::size_t max_block_bytes, std::size_t granule_bytes,
                 std::uint8_t searches = 2) noexcept;
  // Sets the most bytes to cache. Without a call there is no limit.
  void set_limit_bytes(std::size_t bytes) {
    const std::size_t kept = this->bytes();
    limit_bytes_ = std::min(bytes, kNoLimit);
    room_bytes_ = Signed(limit_bytes_) - Signed(kept);
  }

  // Returns a live block for a request of `bytes`; null if none is cached.
  Block* Take(std::size_t bytes) noexcept {
    if (bytes > max_bytes_) return nullptr;
    const std::size_t rounded = (bytes + granule_mask_) & size_mask_;
    for (Entry& entry : SetOf(rounded)) {
      if (entry.key != rounded) continue;
      Block* const block = entry.first;
      if (block == nullptr) break;
      entry.first = block->free_next;
      ++entry.hits;
      room_bytes_ += Signed(rounded);
      SetFlags(*block, kBlockLive);
      return block;
    }
    return nullptr;
  }
  // Counts a search that met a request for `bytes`, a multiple of the granule.
  void NoteSearch(std::size_t bytes) noexcept {
    if (bytes <= max_bytes_) Touch(bytes);
  }
  // Caches `block`, which has no offset. Returns false, and does nothing, if it
  // cannot be cached.
  bool Give(Block* block) noexcept {
    const std::size_t bytes = block->size;
    if (bytes > max_bytes_) return false;
    for (Entry& entry : SetOf(bytes)) {
      if (entry.key != bytes) continue;
      const std::ptrdiff_t room = room_bytes_ - Signed(bytes);
      if (room < 0) break;
      room_bytes_ = room;
      block->free_next = entry.first;
      entry.first = block;
      SetFlags(*block, 0);
      return true;
    }
    return false;
  }

  bool empty() const { return bytes() == 0; }
  // Removes every block; linked by free_next. The sizes stay in the table.
  Block* TakeAll() noexcept { return empty() ? nullptr : TakeIf(false); }
  // Removes one block of `bytes`; null if none is cached. Does not count as a
  // hit.
  Block* TakeOut(std::size_t bytes) noexcept;
  // True if TakeStale() is due.
  bool is_sweep_due() const { return searches_ >= kSweep; }
  // Removes the sizes without a use since the last call, and returns their
  // blocks.
  Block* TakeStale() noexcept;

  std::size_t bytes() const {
    return limit_bytes_ - static_cast<std::size_t>(room_bytes_);
  }
  // Number of blocks that Take() returned. O(entries).
  std::uint64_t hits() const;

  // True if lists and counters agree. For tests; O(blocks).
  bool IsConsistent() const;

 private:
  static constexpr std::size_t kSetBits = 7;
  // Bit in the key of a size that is not yet in the table. No size has this
  // bit.
  static constexpr std::size_t kCandidate = 1;
  static constexpr std::size_t kNoLimit = PTRDIFF_MAX;
  struct Entry {
    // The size, with kCandidate until enough searches have counted it; 0:
    // unused.
    std::size_t key = 0;
    Block* first = nullptr;
    std::uint64_t hits = 0;     // since the last sweep
    std::uint8_t touches = 0;   // searches for the size, up to enough_touches_
    bool was_searched = false;  // since the last sweep
  };
  struct alignas(64) Set {  // a cache line
    std::array<Entry, 2> entries;
  };
  using Sets = std::array<Set, std::size_t{1} << kSetBits>;

  static std::ptrdiff_t Signed(std::size_t bytes) {
    return static_cast<std::ptrdiff_t>(bytes);
  }
  std::array<Entry, 2>& SetOf(std::size_t bytes) noexcept {
    // Fibonacci hashing; the high bits are the well-mixed ones.
    return sets_[(bytes * 0x9e3779b97f4a7c15U) >> (64 - kSetBits)].entries;
  }
  void Touch(std::size_t bytes) noexcept;
  // Sets the key of `entry`, with kCandidate if it has too few touches.
  void Admit(Entry& entry, std::size_t bytes) const noexcept {
    entry.key = bytes | (entry.touches < enough_touches_ ? kCandidate : 0);
  }
  // Removes the blocks of all entries, or only of unused entries.
  Block* TakeIf(bool unused) noexcept;

  // In the object and not behind a pointer: a hit waits for each dependent
  // load.
  Sets sets_;
  std::size_t max_bytes_ = 0;
  std::size_t granule_mask_ = 1;
  std::size_t size_mask_ = ~granule_mask_;
  // Bytes that may still be cached; negative if the limit was lowered below
  // bytes().
  std::ptrdiff_t room_bytes_ = Signed(kNoLimit);
  std::size_t limit_bytes_ = kNoLimit;
  std::uint64_t swept_hits_ = 0;  // hits counted before the last sweep
  std::uint32_t searches_ = 0;    // since the last sweep
  std::uint8_t enough_touches_ = 2;
};

}  // namespace strata

#endif  // STRATA_ALLOCATION_HIT_FRONT_CACHE_H_
