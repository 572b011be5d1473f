#include "strata/tools/trace/live_map.h"

namespace strata::tools {

std::size_t LiveMap::Home(std::uint64_t address) const {
  // Fibonacci hashing; addresses differ in their middle bits, and the upper
  // half of the product is well mixed.
  const std::uint64_t mixed = address * 0x9e3779b97f4a7c15U;
  return static_cast<std::size_t>(mixed >> 32) & (entries_.size() - 1);
}

std::size_t LiveMap::Find(std::uint64_t address) const {
  std::size_t at = Home(address);
  while (entries_[at].address != 0 && entries_[at].address != address) {
    at = Next(at);
  }
  return at;
}

bool LiveMap::Insert(std::uint64_t address, std::uint32_t slot) {
  if ((size_ + 1) * 2 > entries_.size()) Grow();
  Entry& entry = entries_[Find(address)];
  if (entry.address != 0) return false;
  entry = {address, slot};
  ++size_;
  return true;
}

std::optional<std::uint32_t> LiveMap::Remove(std::uint64_t address) {
  std::size_t hole = Find(address);
  if (entries_[hole].address == 0) return std::nullopt;
  const std::uint32_t slot = entries_[hole].slot;
  const std::size_t mask = entries_.size() - 1;
  for (std::size_t at = Next(hole); entries_[at].address != 0; at = Next(at)) {
    // An entry may move back only as far as its home.
    const std::size_t distance = (at - Home(entries_[at].address)) & mask;
    if (distance >= ((at - hole) & mask)) {
      entries_[hole] = entries_[at];
      hole = at;
    }
  }
  entries_[hole] = Entry();
  --size_;
  return slot;
}

void LiveMap::Grow() {
  std::vector<Entry> old(entries_.size() * 2);
  old.swap(entries_);
  for (const Entry& entry : old) {
    if (entry.address != 0) entries_[Find(entry.address)] = entry;
  }
}

}  // namespace strata::tools
