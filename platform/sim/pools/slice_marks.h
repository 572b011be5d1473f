#ifndef STRATA_PLATFORM_SIM_POOLS_SLICE_MARKS_H_
#define STRATA_PLATFORM_SIM_POOLS_SLICE_MARKS_H_

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "strata/base/require_cxx20.h"

namespace strata::sim {

// A mark for each slice of a memory range.
//
// Model: one bit per slice in words, and a second row with one bit per word
//   that is not 0.
// Threads: externally synchronised.
// Memory: one bit per slice.
class SliceMarks {
 public:
  explicit SliceMarks(std::size_t slices)
      : words_(slices / kBits + 1), used_(words_.size() / kBits + 1) {}

  void Set(std::size_t slice) {
    words_[slice / kBits] |= Bit(slice);
    used_[slice / kBits / kBits] |= Bit(slice / kBits);
  }
  void Clear(std::size_t slice) {
    words_[slice / kBits] &= ~Bit(slice);
    if (words_[slice / kBits] == 0) {
      used_[slice / kBits / kBits] &= ~Bit(slice / kBits);
    }
  }
  // The last mark at or below `slice`; there is one. Cost: O(slices in between
  // / 4096).
  std::size_t LastUpTo(std::size_t slice) const {
    std::size_t word = slice / kBits;
    if (const Word bits = UpTo(words_[word], slice)) {
      return word * kBits + Highest(bits);
    }
    // In a lower word: the marks of this word, if any, are above `slice`.
    std::size_t row = word / kBits;
    Word rest = UpTo(used_[row], word) & ~Bit(word);
    while (rest == 0) rest = used_[--row];
    word = row * kBits + Highest(rest);
    return word * kBits + Highest(words_[word]);
  }

 private:
  using Word = std::uint64_t;
  static constexpr std::size_t kBits = 64;

  static Word Bit(std::size_t index) { return Word{1} << (index % kBits); }
  // The bits of `word` up to bit `index`.
  static Word UpTo(Word word, std::size_t index) {
    const Word bit = Bit(index);
    return word & (bit | (bit - 1));
  }
  static std::size_t Highest(Word word) {
    return kBits - 1 - static_cast<std::size_t>(std::countl_zero(word));
  }

  std::vector<Word> words_;
  std::vector<Word> used_;  // words that are not 0
};

}  // namespace strata::sim

#endif  // STRATA_PLATFORM_SIM_POOLS_SLICE_MARKS_H_
