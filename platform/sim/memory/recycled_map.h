#ifndef STRATA_PLATFORM_SIM_MEMORY_RECYCLED_MAP_H_
#define STRATA_PLATFORM_SIM_MEMORY_RECYCLED_MAP_H_

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

}  // namespace strata::sim

#endif  // STRATA_PLATFORM_SIM_MEMORY_RECYCLED_MAP_H_
