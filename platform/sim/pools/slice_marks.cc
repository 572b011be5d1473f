#include "strata/platform/sim/pools/slice_marks.h"

#include <bit>

namespace strata::sim {

SliceMarks::SliceMarks(std::size_t slices)
    : words_(slices / kBits + 1), used_(words_.size() / kBits + 1) {}

std::size_t SliceMarks::LastUpTo(std::size_t slice) const {
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

std::size_t SliceMarks::Highest(Word word) {
  return kBits - 1 - static_cast<std::size_t>(std::countl_zero(word));
}

}  // namespace strata::sim
