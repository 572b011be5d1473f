#ifndef STRATA_STRATEGY_BLOCKS_SIZE_CLASSES_H_
#define STRATA_STRATEGY_BLOCKS_SIZE_CLASSES_H_

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "strata/base/require_cxx20.h"

namespace strata {

// The size classes of an index of free blocks, and a bitmap of those that hold
// a block.
//
// Model: up to 2^kMantissaBits granules, each multiple of the granule has its
//   own class. Above, there are 2^kMantissaBits classes per power of two; the
//   sizes of a class differ by at most 0.4 %. Classes are in the order of size.
//   Two levels of bitmaps find the next class that holds a block.
// Units: bytes; every size is a multiple of kGranuleBytes and below 2^48.
// Threads: not thread-safe. The strategy's lock guards it.
// Cost: O(1). 1 KiB.
// Source: hotpath.md §3 ("semi-log bitmap").
class SizeClasses {
 public:
  static constexpr std::size_t kGranuleBytes = 256;
  static constexpr unsigned kMantissaBits = 8;
  static constexpr unsigned kMantissa = 1U << kMantissaBits;
  static constexpr unsigned kMaxSizeBits = 48;
  static constexpr unsigned kGranuleBits = 8;
  static constexpr unsigned kCount =
      (kMaxSizeBits - kGranuleBits - kMantissaBits + 1) * kMantissa;

  static unsigned Of(std::size_t bytes) {
    const std::uint64_t granules = bytes >> kGranuleBits;
    // 0 for the sizes with a class of their own. Without a branch, which would
    // be mispredicted whenever requests alternate between small and large
    // sizes.
    const auto shift =
        static_cast<unsigned>(std::bit_width(granules | kMantissa)) -
        kMantissaBits - 1;
    return (shift * kMantissa) + static_cast<unsigned>(granules >> shift);
  }

  // Mark: the class holds a block. Unmark: the class, which is marked, holds
  // none.
  void Mark(unsigned size_class) {
    words_[size_class / 64] |= Bit(size_class);
    groups_[size_class / 4096] |= Bit(size_class / 64);
  }
  void Unmark(unsigned size_class) {
    const std::uint64_t word = words_[size_class / 64] ^ Bit(size_class);
    words_[size_class / 64] = word;
    if (word == 0) groups_[size_class / 4096] ^= Bit(size_class / 64);
  }
  bool IsMarked(unsigned size_class) const {
    return (words_[size_class / 64] & Bit(size_class)) != 0;
  }

  // The first class at or after `from` that holds a block; kCount if there is
  // none.
  unsigned Next(unsigned from) const;
  // The largest class that holds a block. Requires that there is one.
  unsigned Last() const;

  // Whether the two levels agree. For tests; O(classes).
  bool IsConsistent() const;

 private:
  static constexpr unsigned kWords = (kCount + 63) / 64;
  static constexpr unsigned kGroups = (kWords + 63) / 64;

  static constexpr std::uint64_t Bit(unsigned i) {
    return std::uint64_t{1} << (i % 64);
  }
  // Bits of `word` at or after position `i`; and after it.
  static constexpr std::uint64_t BitsFrom(std::uint64_t word, unsigned i) {
    return word & (~std::uint64_t{0} << (i % 64));
  }
  static constexpr std::uint64_t BitsAfter(std::uint64_t word, unsigned i) {
    return word & (~std::uint64_t{1} << (i % 64));
  }
  // Requires word != 0, which saves the test that std::countr_zero makes.
  static constexpr unsigned LowestBit(std::uint64_t word) {
    return static_cast<unsigned>(__builtin_ctzll(word));
  }

  std::array<std::uint64_t, kWords> words_{};    // One bit per class.
  std::array<std::uint64_t, kGroups> groups_{};  // One bit per word.
};

// Inline, because it is part of every hit.
inline unsigned SizeClasses::Next(unsigned from) const {
  if (from >= kCount) return kCount;
  unsigned word = from / 64;
  std::uint64_t bits = BitsFrom(words_[word], from);
  if (bits == 0) {
    unsigned group = word / 64;
    std::uint64_t group_bits = BitsAfter(groups_[group], word);
    while (group_bits == 0) {
      if (++group == kGroups) return kCount;
      group_bits = groups_[group];
    }
    word = group * 64 + LowestBit(group_bits);
    bits = words_[word];
  }
  return word * 64 + LowestBit(bits);
}

inline unsigned SizeClasses::Last() const {
  const auto highest = [](std::uint64_t word) {
    return 63U - static_cast<unsigned>(std::countl_zero(word));
  };
  unsigned group = kGroups - 1;
  while (groups_[group] == 0) --group;
  const unsigned word = group * 64 + highest(groups_[group]);
  return word * 64 + highest(words_[word]);
}

inline bool SizeClasses::IsConsistent() const {
  for (unsigned i = 0; i < kWords; ++i) {
    if (((groups_[i / 64] & Bit(i)) != 0) != (words_[i] != 0)) return false;
  }
  return true;
}

}  // namespace strata

#endif  // STRATA_STRATEGY_BLOCKS_SIZE_CLASSES_H_
