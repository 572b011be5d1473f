#ifndef STRATA_FACADE_LOOKUP_KEY_TABLE_H_
#define STRATA_FACADE_LOOKUP_KEY_TABLE_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "strata/base/require_cxx20.h"

namespace strata {

// Finds an object by a 64-bit key without a lock, for instance the front of a
// stream.
//
// Model: a hash table of chains. Nodes are recycled, and freed only with the
//   table. A reader that walks a chain while a node in it is recycled may miss
//   its key, but never finds a wrong one. After a miss, search again with the
//   lock held (FindLocked).
// Threads: any thread. A lookup of a key during its removal is an error of the
//   caller: it announced the end of the stream that it uses.
// Cost: Find is a hash and two cache lines, up to about as many keys as there
//   are buckets: 2 to the power of kBucketBits, of 8 bytes each.
template <class T, unsigned kBucketBits = 8>
class KeyTable {
 public:
  KeyTable() = default;
  KeyTable(const KeyTable&) = delete;
  KeyTable& operator=(const KeyTable&) = delete;

  // Null if there is no entry, or if a concurrent change interfered.
  T* Find(std::uint64_t key) const {
    const Node* node = buckets_[Bucket(key)].load(std::memory_order_acquire);
    for (int steps = 0; node != nullptr && steps < kMaxSteps; ++steps) {
      if (node->key.load(std::memory_order_acquire) == key) {
        return node->value.load(std::memory_order_acquire);
      }
      node = node->next.load(std::memory_order_acquire);
    }
    return nullptr;
  }

  T* FindLocked(std::uint64_t key) const {
    const std::lock_guard<std::mutex> guard(mutex_);
    const Node* node = FindNode(key);
    return node != nullptr ? node->value.load() : nullptr;
  }

  // Adds or replaces the entry of `key`; `value` is not null.
  //
  // Errors: std::bad_alloc.
  void Insert(std::uint64_t key, T* value) {
    const std::lock_guard<std::mutex> guard(mutex_);
    if (Node* node = FindNode(key)) {
      node->value.store(value, std::memory_order_release);
      return;
    }
    if (spare_.empty()) {
      // Remove never allocates. Reserve twice the size, because reserve()
      // allocates exactly the requested capacity.
      if (spare_.capacity() == nodes_.size()) {
        spare_.reserve(2 * nodes_.size() + 1);
      }
      nodes_.push_back(std::make_unique<Node>());
      spare_.push_back(nodes_.back().get());
    }
    Node* node = spare_.back();
    spare_.pop_back();
    std::atomic<Node*>& head = buckets_[Bucket(key)];
    // The value before the key: a reader that sees the key finds its value.
    node->value.store(value, std::memory_order_release);
    node->key.store(key, std::memory_order_release);
    node->next.store(head.load(), std::memory_order_release);
    head.store(node, std::memory_order_release);
  }

  void Remove(std::uint64_t key) {
    TakeFrom(buckets_[Bucket(key)],
             [key](std::uint64_t other) { return other == key; });
  }

  // Removes every entry with a key that satisfies `is_meant` and calls `visit`
  // with its value, in any order and without the lock. Uses no heap. An entry
  // that another thread inserts meanwhile may remain.
  template <class Predicate, class Visit>
  void RemoveIf(Predicate is_meant, Visit visit) {
    for (std::atomic<Node*>& head : buckets_) {
      while (T* value = TakeFrom(head, is_meant)) visit(value);
    }
  }

 private:
  struct Node {
    std::atomic<std::uint64_t> key{0};
    std::atomic<T*> value{nullptr};
    std::atomic<Node*> next{nullptr};
  };
  static constexpr std::size_t kBuckets = std::size_t{1} << kBucketBits;
  // Far above the length of any chain. Only a reader that is disturbed by
  // endless changes gets there.
  static constexpr int kMaxSteps = 1 << 16;

  static std::size_t Bucket(std::uint64_t key) {
    // Fibonacci hashing; the high bits are well mixed.
    return static_cast<std::size_t>((key * 0x9e3779b97f4a7c15U) >>
                                    (64 - kBucketBits));
  }
  // Removes the first node of the chain that satisfies `is_meant`; null if
  // there is none.
  template <class Predicate>
  T* TakeFrom(std::atomic<Node*>& head, Predicate is_meant) {
    const std::lock_guard<std::mutex> guard(mutex_);
    std::atomic<Node*>* link = &head;
    for (Node* node = link->load(); node != nullptr; node = link->load()) {
      if (is_meant(node->key.load())) {
        link->store(node->next.load(), std::memory_order_release);
        spare_.push_back(node);
        return node->value.load();
      }
      link = &node->next;
    }
    return nullptr;
  }
  Node* FindNode(std::uint64_t key) const {
    Node* node = buckets_[Bucket(key)].load();
    while (node != nullptr && node->key.load() != key) node = node->next.load();
    return node;
  }

  std::array<std::atomic<Node*>, kBuckets> buckets_{};
  mutable std::mutex mutex_;
  std::vector<std::unique_ptr<Node>> nodes_;  // all; guarded by mutex_
  std::vector<Node*> spare_;                  // in no chain; guarded by mutex_
};

}  // namespace strata

#endif  // STRATA_FACADE_LOOKUP_KEY_TABLE_H_
