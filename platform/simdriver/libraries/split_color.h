#ifndef STRATA_PLATFORM_SIMDRIVER_LIBRARIES_SPLIT_COLOR_H_
#define STRATA_PLATFORM_SIMDRIVER_LIBRARIES_SPLIT_COLOR_H_

#include <cstddef>
#include <cstdint>
#include <limits>

namespace strata::simdriver {

// The color that PyTorch's `new_group` passes to ncclCommSplit: the hash of the
// list of ranks as a Python tuple, one rank at a time.
//
// Source: PyTorch 2.11 and 2.15, distributed_c10d.py, _process_group_color;
//   CPython 3.8 and newer, tupleobject.c.
class SplitColor {
 public:
  void Add(int rank) {
    const auto lane = static_cast<std::uint64_t>(rank);
    ++count_;
    tuple_ += lane * 14029467366897019727U;
    tuple_ = (tuple_ << 31 | tuple_ >> 33) * 11400714785074694791U;
  }

  // True if PyTorch passes this color for the ranks added so far.
  bool Is(int color) const {
    const std::uint64_t tuple = tuple_ + (count_ ^ (kStart ^ 3527539U));
    constexpr std::uint64_t kMost = std::numeric_limits<std::int32_t>::max();
    // The absolute value of the hash, which is a signed number.
    const std::uint64_t size = tuple >> 63 != 0 ? ~tuple + 1 : tuple;
    return size % (kMost + 1) == static_cast<std::uint64_t>(color);
  }

 private:
  static constexpr std::uint64_t kStart = 2870177450012600261U;

  std::uint64_t count_ = 0;
  std::uint64_t tuple_ = kStart;
};

// The number of ranks in the part of `ranks` ranks that has this color, in
// which `rank` is the one with number `key`; 0 if that cannot be told.
//
// Model: tries the lists of ranks with one distance between neighbours, as the
//   rows and columns of a mesh have. A wrong answer has a chance of about one
//   in a million for a thousand ranks.
// Cost: `ranks` times the logarithm of `ranks`.
inline int SizeOfPart(int ranks, int rank, int key, int color) {
  for (int distance = 1; distance <= ranks; ++distance) {
    const std::int64_t first = rank - static_cast<std::int64_t>(key) * distance;
    if (first < 0) break;
    SplitColor part;
    int count = 0;
    for (std::int64_t next = first; next < ranks; next += distance) {
      part.Add(static_cast<int>(next));
      if (++count > key && part.Is(color)) return count;
    }
  }
  return 0;
}

}  // namespace strata::simdriver

#endif  // STRATA_PLATFORM_SIMDRIVER_LIBRARIES_SPLIT_COLOR_H_
