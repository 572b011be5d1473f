#ifndef STRATA_STRATEGY_FREE_INDEX_H_
#define STRATA_STRATEGY_FREE_INDEX_H_

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "strata/allocation/allocation.h"

namespace strata {

// Free blocks by size: finds the best fit without a tree.
//
// Model: a list per size class. Up to 64 KiB every multiple of the granule has
//   a class of its own; above, 256 classes per power of two, so sizes in one
//   class differ by at most 0.4 %. Three levels of bitmaps find the next class
//   that is not empty. Within a class the first kProbes blocks are compared and
//   the smallest that fits is taken, at the lowest address among equals; so the
//   result is the best fit but for ties longer than kProbes, and a block that
//   fits is never missed in a class above the request's own.
// Units: bytes; every size is a multiple of kGranuleBytes and below 2^48.
// Threads: none; the strategy's lock guards it.
// Cost: O(1); 67 KiB per index. Links are in the blocks: no heap.
// Source: hotpath.md §3 ("semi-log bitmap"), §6: within 2 % of the memory of an
//   exact best fit, where ordered trees cost four to nine times the time.
class FreeIndex {
 public:
  static constexpr std::size_t kGranuleBytes = 256;
  static constexpr int kProbes = 8;

  FreeIndex() = default;
  FreeIndex(const FreeIndex&) = delete;
  FreeIndex& operator=(const FreeIndex&) = delete;

  void Insert(Block* block);
  // `block` is in this index.
  void Remove(Block* block);
  // A block of at least `bytes`, still in the index; null if there is none.
  Block* FindBestFit(std::size_t bytes) const;
  // A block of exactly `bytes`, still in the index; null if there is none among
  // the first kProbes of its class.
  Block* FindExact(std::size_t bytes) const;

  bool empty() const { return summary_ == 0; }
  std::size_t count() const { return count_; }
  std::size_t total_bytes() const { return total_bytes_; }
  // The largest block, to the accuracy of its class; 0 if there is none.
  std::size_t LargestBytes() const;

  // Whether lists, bitmaps and counters agree. For tests; O(blocks + classes).
  bool IsConsistent() const;

 private:
  static constexpr unsigned kMantissaBits = 8;
  static constexpr unsigned kMantissa = 1U << kMantissaBits;
  static constexpr unsigned kMaxSizeBits = 48;
  static constexpr unsigned kGranuleBits = 8;
  static constexpr unsigned kClasses =
      (kMaxSizeBits - kGranuleBits - kMantissaBits + 1) * kMantissa;
  static constexpr unsigned kWords = kClasses / 64;
  static constexpr unsigned kGroups = (kWords + 63) / 64;

  static unsigned ClassOf(std::size_t bytes) {
    const std::uint64_t granules = bytes >> kGranuleBits;
    if (granules < kMantissa) return static_cast<unsigned>(granules);
    const auto shift =
        static_cast<unsigned>(std::bit_width(granules)) - kMantissaBits - 1;
    return (shift * kMantissa) + static_cast<unsigned>(granules >> shift);
  }

  // The first class from `from` on that has a block; kClasses if none.
  unsigned NextClass(unsigned from) const;
  Block* BestOf(unsigned size_class, std::size_t bytes) const;

  std::array<Block*, kClasses> heads_{};
  std::array<std::uint64_t, kWords> words_{};    // a bit per class
  std::array<std::uint64_t, kGroups> groups_{};  // a bit per word
  std::uint64_t summary_ = 0;                    // a bit per group
  std::size_t count_ = 0;
  std::size_t total_bytes_ = 0;
};

}  // namespace strata

#endif  // STRATA_STRATEGY_FREE_INDEX_H_
