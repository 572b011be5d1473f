#ifndef STRATA_ALLOCATION_FRONT_CACHE_H_
#define STRATA_ALLOCATION_FRONT_CACHE_H_

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "strata/allocation/allocation.h"
#include "strata/allocation/block_flags.h"

namespace strata {

// Freed blocks of sizes that come again and again, kept whole for the next
// request of the same size: no search, no cut, no join.
//
// Model: a set-associative table from an exact size to a list of blocks, last
//   in, first out. A size is admitted once searches met it often enough, and
//   given up when it went unused through kSweep searches. A block in here is
//   free for everybody but the indices of its strategy: which calls TakeAll
//   before it looks at what is free, takes more from below, or fails.
// Threads: none; the strategy's hit lock guards it.
// Cost: a hit or a free: a line of the table and the block's. 8 KiB. TakeAll
//   and TakeStale: 256 entries, if anything is kept.
// Source: hotpath.md §6 (second-touch admission, decay, flush before growth),
//   §7 (128 sets of 2).
class FrontCache {
 public:
  // Searches after which sizes that were not used are given up.
  static constexpr std::uint32_t kSweep = 1024;

  // Keeps blocks of at most `max_block_bytes`, which requests get whose size,
  // rounded up to the power of two `granule_bytes`, 2 or more, is theirs, once
  // `searches` have met it. 0 bytes: keeps none.
  FrontCache(std::size_t max_block_bytes, std::size_t granule_bytes,
             std::uint8_t searches = 2);
  FrontCache(const FrontCache&) = delete;
  FrontCache& operator=(const FrontCache&) = delete;

  // Most bytes to keep from now on; there is no limit at first.
  void set_limit_bytes(std::size_t bytes) {
    const std::size_t kept = this->bytes();
    limit_bytes_ = std::min(bytes, kNoLimit);
    room_bytes_ = Signed(limit_bytes_) - Signed(kept);
  }

  // A live block for a request of `bytes`; null if none is kept.
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
  // A request for `bytes`, a multiple of the granule, was met by a search.
  void NoteSearch(std::size_t bytes) noexcept {
    if (bytes <= max_bytes_) Touch(bytes);
  }
  // False, and nothing is done, if it is not kept. `block` has no offset.
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
  // Takes out every block; linked by free_next. What is admitted stays so.
  Block* TakeAll() noexcept { return empty() ? nullptr : TakeIf(false); }
  // Takes out one block of `bytes`, which is no hit; null if none is kept.
  Block* TakeOut(std::size_t bytes) noexcept;
  // Whether it is time to call TakeStale.
  bool is_sweep_due() const { return searches_ >= kSweep; }
  // Gives up the sizes that were not used since the last call, and takes out
  // their blocks.
  Block* TakeStale() noexcept;

  std::size_t bytes() const {
    return limit_bytes_ - static_cast<std::size_t>(room_bytes_);
  }
  // How often Take gave a block. O(entries).
  std::uint64_t hits() const;

  // Whether lists and counters agree. For tests; O(blocks).
  bool IsConsistent() const;

 private:
  static constexpr std::size_t kSetBits = 7;
  // A size that is not admitted has a key that is no size.
  static constexpr std::size_t kCandidate = 1;
  static constexpr std::size_t kNoLimit = PTRDIFF_MAX;
  struct Entry {
    // The size, and kCandidate unless enough searches have met it; 0: unused.
    std::size_t key = 0;
    Block* first = nullptr;
    std::uint64_t hits = 0;     // since the last sweep
    std::uint8_t touches = 0;   // searches for it, up to enough_touches_
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
  // As far as its touches say.
  void Admit(Entry& entry, std::size_t bytes) const noexcept {
    entry.key = bytes | (entry.touches < enough_touches_ ? kCandidate : 0);
  }
  // Of the entries that were not used, or of all.
  Block* TakeIf(bool unused) noexcept;

  // Here, not behind a pointer: a hit waits for each load on the way to it.
  Sets sets_;
  const std::size_t max_bytes_;
  const std::size_t granule_mask_;
  const std::size_t size_mask_;  // the other bits
  // How many bytes may still be kept; negative if there are too many now.
  std::ptrdiff_t room_bytes_ = Signed(kNoLimit);
  std::size_t limit_bytes_ = kNoLimit;
  std::uint64_t swept_hits_ = 0;  // of entries, before the last sweep
  std::uint32_t searches_ = 0;    // since the last sweep
  const std::uint8_t enough_touches_;
};

}  // namespace strata

#endif  // STRATA_ALLOCATION_FRONT_CACHE_H_
