#include "strata/platform/sim/streams/vector_clock.h"

#include <algorithm>

namespace strata::sim {
namespace {

constexpr auto kKeyBelow = [](const auto& entry, std::uint64_t key) {
  return entry.key < key;
};

}  // namespace

std::uint64_t VectorClock::At(std::uint64_t key) const {
  const auto entry =
      std::lower_bound(entries_.begin(), entries_.end(), key, kKeyBelow);
  return entry != entries_.end() && entry->key == key ? entry->count : 0;
}

void VectorClock::Raise(std::uint64_t key, std::uint64_t count) {
  if (count == 0) return;
  const auto entry =
      std::lower_bound(entries_.begin(), entries_.end(), key, kKeyBelow);
  if (entry != entries_.end() && entry->key == key) {
    entry->count = std::max(entry->count, count);
  } else {
    entries_.insert(entry, Entry{key, count});
  }
}

void VectorClock::Join(const VectorClock& other) {
  // Mostly both clocks have the same streams, so that nothing is inserted.
  std::size_t at = 0;
  for (const Entry& entry : other.entries_) {
    while (at < entries_.size() && entries_[at].key < entry.key) ++at;
    if (at < entries_.size() && entries_[at].key == entry.key) {
      entries_[at].count = std::max(entries_[at].count, entry.count);
    } else {
      entries_.insert(entries_.begin() + static_cast<std::ptrdiff_t>(at),
                      entry);
    }
  }
}

}  // namespace strata::sim
