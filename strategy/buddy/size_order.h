#ifndef STRATA_STRATEGY_BUDDY_SIZE_ORDER_H_
#define STRATA_STRATEGY_BUDDY_SIZE_ORDER_H_

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "strata/allocation/allocation.h"

namespace strata {

// Free blocks in the exact order of size, then address: finds the smallest that
// fits, at the lowest address among equals.
//
// Model: eight size classes per power of two, a bitmap of those that are not
//   empty, and a treap in each: its links are in the blocks, its priorities a
//   hash of their addresses. Small enough to have one per thread.
// Units: bytes; sizes below 2^48.
// Threads: none; the pool's lock guards it.
// Cost: O(log n) in the blocks of one class; 2.5 KiB per index, no heap.
// Source: paddle.md §3.4 rule 3, which the original keeps in a std::set.
class SizeOrder {
 public:
  SizeOrder() = default;
  SizeOrder(const SizeOrder&) = delete;
  SizeOrder& operator=(const SizeOrder&) = delete;

  void Insert(Block* block);
  // `block` is in this index.
  void Remove(Block* block);
  // The best fit, still in the index; null if there is none.
  Block* FindBestFit(std::size_t bytes) const;

  std::size_t count() const { return count_; }
  std::size_t total_bytes() const { return total_bytes_; }
  // 0 if there is none.
  std::size_t LargestBytes() const;

  // Whether order, shape, bitmap and counters agree. For tests; O(blocks).
  bool IsConsistent() const;

 private:
  struct Sums {
    std::size_t count = 0;
    std::size_t bytes = 0;
  };

  static constexpr unsigned kGranuleBits = 8;
  static constexpr unsigned kMaxSizeBits = 48;
  static constexpr unsigned kMantissaBits = 3;
  static constexpr unsigned kMantissa = 1U << kMantissaBits;
  static constexpr unsigned kClasses =
      (kMaxSizeBits - kGranuleBits - kMantissaBits + 1) * kMantissa;
  static constexpr unsigned kWords = (kClasses + 63) / 64;

  static unsigned ClassOf(std::size_t bytes) {
    const std::uint64_t granules = bytes >> kGranuleBits;
    if (granules < kMantissa) return static_cast<unsigned>(granules);
    const auto shift =
        static_cast<unsigned>(std::bit_width(granules)) - kMantissaBits - 1;
    return (shift * kMantissa) + static_cast<unsigned>(granules >> shift);
  }
  static std::uint64_t Bit(unsigned i) { return std::uint64_t{1} << (i % 64); }
  static std::uint64_t Priority(const Block* block) {
    // Odd, so that no two addresses collide; the golden ratio of 2^64.
    return reinterpret_cast<std::uintptr_t>(block->data) *
           std::uint64_t{0x9E3779B97F4A7C15};
  }
  static bool IsBefore(const Block* a, const Block* b) {
    return a->size != b->size ? a->size < b->size : a->data < b->data;
  }
  static Block*& Lower(Block* block) { return block->free_previous; }
  static Block*& Higher(Block* block) { return block->free_next; }
  // The first block of `tree` of at least `bytes`; null if there is none.
  static Block* FirstOf(Block* tree, std::size_t bytes);
  // Adds what is below `tree` to `sums`; false if it is out of order.
  static bool Check(Block* tree, unsigned size_class, const Block*& previous,
                    Sums& sums);

  // The first class from `from` on that has a block; kClasses if none.
  unsigned NextClass(unsigned from) const;

  std::array<Block*, kClasses> roots_{};
  std::array<std::uint64_t, kWords> words_{};  // a bit per class
  std::size_t count_ = 0;
  std::size_t total_bytes_ = 0;
};

// Inline, because they are most of a hit.

inline void SizeOrder::Insert(Block* block) {
  const unsigned size_class = ClassOf(block->size);
  words_[size_class / 64] |= Bit(size_class);
  const std::uint64_t priority = Priority(block);
  Block** link = &roots_[size_class];
  while (*link != nullptr && Priority(*link) > priority) {
    link = IsBefore(block, *link) ? &Lower(*link) : &Higher(*link);
  }
  // What hangs there is parted into what comes before the block and after it.
  Block* rest = *link;
  *link = block;
  Block** low = &Lower(block);
  Block** high = &Higher(block);
  while (rest != nullptr) {
    if (IsBefore(rest, block)) {
      *low = rest;
      low = &Higher(rest);
      rest = *low;
    } else {
      *high = rest;
      high = &Lower(rest);
      rest = *high;
    }
  }
  *low = nullptr;
  *high = nullptr;
  ++count_;
  total_bytes_ += block->size;
}

inline void SizeOrder::Remove(Block* block) {
  const unsigned size_class = ClassOf(block->size);
  Block** link = &roots_[size_class];
  while (*link != block) {
    link = IsBefore(block, *link) ? &Lower(*link) : &Higher(*link);
  }
  Block* low = Lower(block);
  Block* high = Higher(block);
  while (low != nullptr && high != nullptr) {
    if (Priority(low) > Priority(high)) {
      *link = low;
      link = &Higher(low);
      low = *link;
    } else {
      *link = high;
      link = &Lower(high);
      high = *link;
    }
  }
  *link = low != nullptr ? low : high;
  if (roots_[size_class] == nullptr) {
    words_[size_class / 64] &= ~Bit(size_class);
  }
  --count_;
  total_bytes_ -= block->size;
}

inline Block* SizeOrder::FirstOf(Block* tree, std::size_t bytes) {
  Block* best = nullptr;
  while (tree != nullptr) {
    if (tree->size >= bytes) {
      best = tree;
      tree = Lower(tree);
    } else {
      tree = Higher(tree);
    }
  }
  return best;
}

inline unsigned SizeOrder::NextClass(unsigned from) const {
  if (from >= kClasses) return kClasses;
  unsigned word = from / 64;
  std::uint64_t bits = words_[word] & (~std::uint64_t{0} << (from % 64));
  while (bits == 0) {
    if (++word == kWords) return kClasses;
    bits = words_[word];
  }
  return word * 64 + static_cast<unsigned>(std::countr_zero(bits));
}

inline Block* SizeOrder::FindBestFit(std::size_t bytes) const {
  if (bytes >> kMaxSizeBits != 0) return nullptr;
  const unsigned own = ClassOf(bytes);
  unsigned size_class = NextClass(own);
  if (size_class == own) {
    if (Block* block = FirstOf(roots_[own], bytes)) return block;
    size_class = NextClass(own + 1);
  }
  return size_class < kClasses ? FirstOf(roots_[size_class], bytes) : nullptr;
}

}  // namespace strata

#endif  // STRATA_STRATEGY_BUDDY_SIZE_ORDER_H_
