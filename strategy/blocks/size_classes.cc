#include "strata/strategy/blocks/size_classes.h"

namespace strata {

unsigned SizeClasses::Last() const {
  const auto highest = [](std::uint64_t word) {
    return 63U - static_cast<unsigned>(std::countl_zero(word));
  };
  unsigned group = kGroups - 1;
  while (groups_[group] == 0) --group;
  const unsigned word = group * 64 + highest(groups_[group]);
  return word * 64 + highest(words_[word]);
}

bool SizeClasses::IsConsistent() const {
  for (unsigned i = 0; i < kWords; ++i) {
    if (((groups_[i / 64] & Bit(i)) != 0) != (words_[i] != 0)) return false;
  }
  return true;
}

}  // namespace strata
