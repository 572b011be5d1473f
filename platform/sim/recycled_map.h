#ifndef STRATA_PLATFORM_SIM_RECYCLED_MAP_H_
#define STRATA_PLATFORM_SIM_RECYCLED_MAP_H_

#include <map>
#include <utility>
#include <vector>

#include "strata/platform/require_cxx20.h"

namespace strata {

// An ordered map whose erased entries make room for those added next, without
// the heap.
//
// Threads: externally synchronised.
// Memory: that of as many entries as there were at most, and three words for
//   each that is not in use.
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

  // `key` is not there yet; it goes before `hint`, or costs a search.
  iterator Add(const_iterator hint, const Key& key, Value value) {
    if (spare_.empty()) return Base::emplace_hint(hint, key, std::move(value));
    Node node = std::move(spare_.back());
    spare_.pop_back();
    node.key() = key;
    node.mapped() = std::move(value);
    return Base::insert(hint, std::move(node));
  }
  // What is left of the value is there until its node is used again.
  void Erase(const_iterator position) {
    Node& spare = spare_.emplace_back();
    spare = Base::extract(position);
  }

 private:
  std::vector<Node> spare_;
};

}  // namespace strata

#endif  // STRATA_PLATFORM_SIM_RECYCLED_MAP_H_
