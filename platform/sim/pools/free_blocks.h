#ifndef STRATA_PLATFORM_SIM_POOLS_FREE_BLOCKS_H_
#define STRATA_PLATFORM_SIM_POOLS_FREE_BLOCKS_H_

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <set>
#include <utility>
#include <vector>

#include "strata/platform/memory_types.h"
#include "strata/platform/sim/memory/frame_table.h"

namespace strata::sim {

// Blocks of memory, ordered by size, then by address.
//
// Model: size classes, eight between one power of two and the next. Each class
//   is an ordered set; a bit marks each class that is not empty.
// Threads: externally synchronised.
// Memory: 24 KiB. Unused nodes are kept for later blocks.
// Cost: the depth of the set of a class. A single set made the calls of a pool
//   8 to 15 % slower.
template <class Block>
class FreeBlocks {
 public:
  struct Entry {
    std::uint64_t bytes;  // kSliceBytes or more
    DevicePtr ptr;
    Block* block;

    friend bool operator<(const Entry& a, const Entry& b) {
      return a.bytes != b.bytes ? a.bytes < b.bytes : a.ptr < b.ptr;
    }
  };
  using Position = typename std::set<Entry>::iterator;

  Position Add(const Entry& entry) {
    const std::size_t index = ClassOf(entry.bytes);
    used_[index / kBits] |= Bit(index);
    if (spare_.empty()) return classes_[index].insert(entry).first;
    Node node = std::move(spare_.back());
    spare_.pop_back();
    node.value() = entry;
    return classes_[index].insert(std::move(node)).position;
  }
  void Remove(Position position) {
    const std::size_t index = ClassOf(position->bytes);
    spare_.push_back(classes_[index].extract(position));
    if (classes_[index].empty()) used_[index / kBits] &= ~Bit(index);
  }

  // The first block of at least `bytes` that `accepts` returns true for, or
  // null. Visits each rejected block.
  template <class Accepts>
  Block* FindFirst(std::uint64_t bytes, Accepts accepts) const {
    std::size_t index = ClassOf(bytes);
    auto it = classes_[index].lower_bound(Entry{bytes, 0, nullptr});
    while (true) {
      for (; it != classes_[index].end(); ++it) {
        if (accepts(*it->block)) return it->block;
      }
      index = NextUsed(index + 1);
      if (index == kClasses) return nullptr;
      it = classes_[index].begin();
    }
  }
  template <class Visit>
  void ForEach(Visit visit) const {
    for (std::size_t index = NextUsed(0); index != kClasses;
         index = NextUsed(index + 1)) {
      for (const Entry& entry : classes_[index]) visit(*entry.block);
    }
  }

 private:
  using Node = typename std::set<Entry>::node_type;
  using Word = std::uint64_t;
  static constexpr std::size_t kBits = 64;
  static constexpr int kClassBits = 3;
  static constexpr int kSliceShift = std::countr_zero(kSliceBytes);
  // Enough for any 64-bit size.
  static constexpr std::size_t kClasses = kBits << kClassBits;

  static Word Bit(std::size_t index) { return Word{1} << (index % kBits); }
  // Grows with the size.
  static std::size_t ClassOf(std::uint64_t bytes) {
    const std::uint64_t slices = bytes >> kSliceShift;
    const int above =
        static_cast<int>(kBits) - std::countl_zero(slices) - 1 - kClassBits;
    if (above <= 0) return static_cast<std::size_t>(slices);
    // The leading bits; the first one is always set.
    return (static_cast<std::size_t>(above) << kClassBits) +
           static_cast<std::size_t>(slices >> above);
  }
  // The first class from `index` on that is not empty, or kClasses.
  std::size_t NextUsed(std::size_t index) const {
    if (index >= kClasses) return kClasses;
    std::size_t word = index / kBits;
    Word bits = used_[word] & (~Word{0} << (index % kBits));
    while (bits == 0) {
      if (++word == used_.size()) return kClasses;
      bits = used_[word];
    }
    return word * kBits + static_cast<std::size_t>(std::countr_zero(bits));
  }

  std::array<std::set<Entry>, kClasses> classes_;
  std::array<Word, kClasses / kBits> used_{};
  std::vector<Node> spare_;
};

}  // namespace strata::sim

#endif  // STRATA_PLATFORM_SIM_POOLS_FREE_BLOCKS_H_
