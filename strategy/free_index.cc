#include "strata/strategy/free_index.h"

#include <algorithm>

namespace strata {
namespace {

constexpr std::uint64_t Bit(unsigned i) { return std::uint64_t{1} << (i % 64); }

// The bits of `word` from position `from` on; `from` may be 64.
constexpr std::uint64_t BitsFrom(std::uint64_t word, unsigned from) {
  return from < 64 ? word & (~std::uint64_t{0} << from) : 0;
}

constexpr unsigned LowestBit(std::uint64_t word) {
  return static_cast<unsigned>(std::countr_zero(word));
}

}  // namespace

void FreeIndex::Insert(Block* block) {
  const unsigned size_class = ClassOf(block->size);
  Block*& head = heads_[size_class];
  block->free_previous = nullptr;
  block->free_next = head;
  if (head != nullptr) {
    head->free_previous = block;
  } else {
    words_[size_class / 64] |= Bit(size_class);
    groups_[size_class / 4096] |= Bit(size_class / 64);
    summary_ |= Bit(size_class / 4096);
  }
  head = block;
  ++count_;
  total_bytes_ += block->size;
}

void FreeIndex::Remove(Block* block) {
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
        if (groups_[size_class / 4096] == 0) {
          summary_ &= ~Bit(size_class / 4096);
        }
      }
    }
  }
  --count_;
  total_bytes_ -= block->size;
}

unsigned FreeIndex::NextClass(unsigned from) const {
  if (from >= kClasses) return kClasses;
  unsigned word = from / 64;
  std::uint64_t bits = BitsFrom(words_[word], from % 64);
  if (bits == 0) {
    unsigned group = word / 64;
    std::uint64_t group_bits = BitsFrom(groups_[group], word % 64 + 1);
    if (group_bits == 0) {
      const std::uint64_t rest = BitsFrom(summary_, group + 1);
      if (rest == 0) return kClasses;
      group = LowestBit(rest);
      group_bits = groups_[group];
    }
    word = group * 64 + LowestBit(group_bits);
    bits = words_[word];
  }
  return word * 64 + LowestBit(bits);
}

Block* FreeIndex::BestOf(unsigned size_class, std::size_t bytes) const {
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

Block* FreeIndex::FindBestFit(std::size_t bytes) const {
  const unsigned own_class = ClassOf(bytes);
  if (own_class >= kClasses) return nullptr;
  unsigned size_class = NextClass(own_class);
  if (size_class == own_class) {
    if (Block* block = BestOf(own_class, bytes)) return block;
    size_class = NextClass(own_class + 1);
  }
  return size_class < kClasses ? BestOf(size_class, bytes) : nullptr;
}

Block* FreeIndex::FindExact(std::size_t bytes) const {
  const unsigned own_class = ClassOf(bytes);
  if (own_class >= kClasses || heads_[own_class] == nullptr) return nullptr;
  Block* best = BestOf(own_class, bytes);
  return best != nullptr && best->size == bytes ? best : nullptr;
}

std::size_t FreeIndex::LargestBytes() const {
  if (summary_ == 0) return 0;
  const auto highest = [](std::uint64_t word) {
    return 63U - static_cast<unsigned>(std::countl_zero(word));
  };
  const unsigned group = highest(summary_);
  const unsigned word = group * 64 + highest(groups_[group]);
  const unsigned size_class = word * 64 + highest(words_[word]);
  std::size_t largest = 0;
  const Block* block = heads_[size_class];
  for (int i = 0; i < kProbes && block != nullptr; ++i) {
    largest = std::max(largest, block->size);
    block = block->free_next;
  }
  return largest;
}

bool FreeIndex::IsConsistent() const {
  std::size_t count = 0;
  std::size_t bytes = 0;
  for (unsigned i = 0; i < kClasses; ++i) {
    const bool marked = (words_[i / 64] & Bit(i)) != 0;
    if (marked != (heads_[i] != nullptr)) return false;
    const Block* previous = nullptr;
    for (const Block* block = heads_[i]; block != nullptr;
         block = block->free_next) {
      if (block->free_previous != previous) return false;
      if (ClassOf(block->size) != i) return false;
      if (!block->is_free) return false;
      ++count;
      bytes += block->size;
      previous = block;
    }
  }
  for (unsigned i = 0; i < kWords; ++i) {
    if (((groups_[i / 64] & Bit(i)) != 0) != (words_[i] != 0)) return false;
  }
  for (unsigned i = 0; i < kGroups; ++i) {
    if (((summary_ & Bit(i)) != 0) != (groups_[i] != 0)) return false;
  }
  return count == count_ && bytes == total_bytes_;
}

}  // namespace strata
