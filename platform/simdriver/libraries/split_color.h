#ifndef STRATA_PLATFORM_SIMDRIVER_LIBRARIES_SPLIT_COLOR_H_
#define STRATA_PLATFORM_SIMDRIVER_LIBRARIES_SPLIT_COLOR_H_

#include <cstddef>
#include <cstdint>
#include <limits>

namespace strata::simdriver {

// The colors that PyTorch gives to ncclCommSplit: hashes of the list of ranks,
// one rank at a time.
//
// Source: PyTorch 2.11 and 2.15. `new_group` hashes the list as a Python tuple
//   (distributed_c10d.py, _process_group_color; CPython 3.8 and newer,
//   tupleobject.c). `split_group` folds std::hash (ProcessGroupNCCL.cpp,
//   genNcclSplitColor).
class SplitColor {
 public:
  void Add(int rank) {
    const auto lane = static_cast<std::uint64_t>(rank);
    ++count_;
    tuple_ += lane * 14029467366897019727U;
    tuple_ = (tuple_ << 31 | tuple_ >> 33) * 11400714785074694791U;
    fold_ ^= lane + 0x9e3779b9U + (fold_ << 6) + (fold_ >> 2);
  }

  // Whether PyTorch gives this color to the ranks added so far.
  bool Is(int color) const {
    const std::uint64_t tuple = tuple_ + (count_ ^ (kStart ^ 3527539U));
    constexpr std::uint64_t kMost = std::numeric_limits<std::int32_t>::max();
    const auto wanted = static_cast<std::uint64_t>(color);
    return Magnitude(tuple) % (kMost + 1) == wanted ||
           Magnitude(fold_) % kMost == wanted;
  }

 private:
  static constexpr std::uint64_t kStart = 2870177450012600261U;

  // The absolute value of the number as a signed one.
  static std::uint64_t Magnitude(std::uint64_t number) {
    return number >> 63 != 0 ? ~number + 1 : number;
  }

  std::uint64_t count_ = 0;
  std::uint64_t tuple_ = kStart;
  std::uint64_t fold_ = 0;
};

// The number of ranks in the part of `ranks` ranks that has this color, in
// which `rank` is the one with number `key`; 0 if that cannot be told.
//
// Model: tries the lists of ranks with one distance between neighbours, as the
//   rows and columns of a mesh have. A wrong answer has a chance of about one in
//   a million for a thousand ranks.
// Cost: `ranks` times the logarithm of `ranks`.
inline int SizeOfPart(int ranks, int rank, int key, int color) {
  for (int distance = 1; distance <= ranks; ++distance) {
    const std::int64_t first =
        rank - static_cast<std::int64_t>(key) * distance;
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
