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
//   class differ by at most 0.4 %. Two levels of bitmaps find the next class
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

  bool empty() const { return count_ == 0; }
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

  static constexpr std::uint64_t Bit(unsigned i) {
    return std::uint64_t{1} << (i % 64);
  }
  // The bits of `word` from position `from` on; `from` may be 64.
  static constexpr std::uint64_t BitsFrom(std::uint64_t word, unsigned from) {
    return from < 64 ? word & (~std::uint64_t{0} << from) : 0;
  }
  static constexpr unsigned LowestBit(std::uint64_t word) {
    return static_cast<unsigned>(std::countr_zero(word));
  }

  // The first class from `from` on that has a block; kClasses if none.
  unsigned NextClass(unsigned from) const;
  Block* BestOf(unsigned size_class, std::size_t bytes) const;

  std::array<Block*, kClasses> heads_{};
  std::array<std::uint64_t, kWords> words_{};    // a bit per class
  std::array<std::uint64_t, kGroups> groups_{};  // a bit per word
  std::size_t count_ = 0;
  std::size_t total_bytes_ = 0;
};

// Inline, because they are most of a hit.

inline void FreeIndex::Insert(Block* block) {
  const unsigned size_class = ClassOf(block->size);
  Block*& head = heads_[size_class];
  block->free_previous = nullptr;
  block->free_next = head;
  if (head != nullptr) {
    head->free_previous = block;
  } else {
    words_[size_class / 64] |= Bit(size_class);
    groups_[size_class / 4096] |= Bit(size_class / 64);
  }
  head = block;
  ++count_;
  total_bytes_ += block->size;
}

inline void FreeIndex::Remove(Block* block) {
  const unsigned size_class = ClassOf(block->size);
  if (block->free_next != nullptr) {
    block->free_next->free_previous = block->free_previous;
  }
  if (block->free_previous != nullptr) {
    block->free_previous->free_next = block->free_next;
  } else {
    heads_[size_class] = block->free_next;
    if (block->free_next == nullptr) {
      words_[size_class / 64] &= ~Bit(size_class);
      if (words_[size_class / 64] == 0) {
        groups_[size_class / 4096] &= ~Bit(size_class / 64);
      }
    }
  }
  --count_;
  total_bytes_ -= block->size;
}

inline unsigned FreeIndex::NextClass(unsigned from) const {
  if (from >= kClasses) return kClasses;
  unsigned word = from / 64;
  std::uint64_t bits = BitsFrom(words_[word], from % 64);
  if (bits == 0) {
    unsigned group = word / 64;
    std::uint64_t group_bits = BitsFrom(groups_[group], word % 64 + 1);
    while (group_bits == 0) {
      if (++group == kGroups) return kClasses;
      group_bits = groups_[group];
    }
    word = group * 64 + LowestBit(group_bits);
    bits = words_[word];
  }
  return word * 64 + LowestBit(bits);
}

inline Block* FreeIndex::BestOf(unsigned size_class, std::size_t bytes) const {
  Block* best = nullptr;
  Block* block = heads_[size_class];
  for (int i = 0; i < kProbes && block != nullptr; ++i) {
    if (block->size >= bytes &&
        (best == nullptr || block->size < best->size ||
         (block->size == best->size && block->data < best->data))) {
      best = block;
    }
    block = block->free_next;
  }
  return best;
}

inline Block* FreeIndex::FindBestFit(std::size_t bytes) const {
  const unsigned own_class = ClassOf(bytes);
  if (own_class >= kClasses) return nullptr;
  unsigned size_class = NextClass(own_class);
  if (size_class == own_class) {
    if (Block* block = BestOf(own_class, bytes)) return block;
    size_class = NextClass(own_class + 1);
  }
  return size_class < kClasses ? BestOf(size_class, bytes) : nullptr;
}

}  // namespace strata

#endif  // STRATA_STRATEGY_FREE_INDEX_H_
