#ifndef STRATA_PLATFORM_SIM_MEMORY_RECYCLED_MAP_H_
#define STRATA_PLATFORM_SIM_MEMORY_RECYCLED_MAP_H_

#include <cstdint>
#include <iterator>
#include <map>
#include <utility>
#include <vector>

#include "strata/base/require_cxx20.h"

namespace strata::sim {

// An ordered map that reuses the nodes of erased entries for new ones, without
// the heap.
//
// Threads: externally synchronised.
// Memory: the maximum number of entries so far, plus three words for each
// unused node.
template <class Key, class Value>
class RecycledMap : private std::map<Key, Value> {
 private:
  using Base = std::map<Key, Value>;
  using Node = typename Base::node_type;

 public:
  using typename Base::const_iterator;
  using typename Base::iterator;

  using Base::begin;
  using Base::empty;
  using Base::end;
  using Base::find;
  using Base::size;
  using Base::upper_bound;

  // `key` is not in the map. The entry is inserted before `hint` if that fits;
  // else the map searches.
  iterator Add(const_iterator hint, const Key& key, Value value) {
    if (spare_.empty()) return Base::emplace_hint(hint, key, std::move(value));
    Node node = std::move(spare_.back());
    spare_.pop_back();
    node.key() = key;
    node.mapped() = std::move(value);
    return Base::insert(hint, std::move(node));
  }
  // The remains of the value live until its node is reused.
  void Erase(const_iterator position) {
    Node& spare = spare_.emplace_back();
    spare = Base::extract(position);
  }

 private:
  std::vector<Node> spare_;
};

// Free ranges by their end, so that allocating the front of one moves no node:
// end -> begin.
using FreeRanges = RecycledMap<std::uint64_t, std::uint64_t>;

// Adds the range [begin, end) and joins it with its neighbours.
inline void AddRange(std::uint64_t begin, std::uint64_t end,
                     FreeRanges* ranges) {
  auto next = ranges->upper_bound(begin);
  if (next != ranges->begin()) {
    const auto previous = std::prev(next);
    if (previous->first == begin) {
      begin = previous->second;
      ranges->Erase(previous);
    }
  }
  if (next != ranges->end() && next->second == end) {
    next->second = begin;
  } else {
    ranges->Add(next, end, begin);
  }
}

// The entry of `map` that covers all of [ptr, ptr + bytes), or the end of
// `map`. Its keys are the starts of ranges, and its values have `bytes`.
template <class Map>
auto FindCovering(const Map& map, std::uint64_t ptr, std::uint64_t bytes) {
  const auto next = map.upper_bound(ptr);
  if (next == map.begin()) return map.end();
  const auto found = std::prev(next);
  const std::uint64_t offset = ptr - found->first;
  const std::uint64_t size = found->second.bytes;
  return offset < size && bytes <= size - offset ? found : map.end();
}

}  // namespace strata::sim

#endif  // STRATA_PLATFORM_SIM_MEMORY_RECYCLED_MAP_H_
