#ifndef STRATA_FACADE_KEY_TABLE_H_
#define STRATA_FACADE_KEY_TABLE_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "strata/platform/require_cxx20.h"

namespace strata {

// Finds an object, for instance the front of a stream, by a 64-bit key without
// taking a lock.
//
// Model: a hash table of chains whose nodes are never freed before the table,
//   only recycled. A reader that walks a chain while a node in it is recycled
//   may miss its key, never find a wrong one; a miss is repeated with the lock
//   held (FindLocked).
// Threads: any thread. Looking up a key while it is being removed is the
//   caller's error: he uses a stream that he says is destroyed.
// Cost: Find is a hash and two cache lines, up to about as many keys as there
//   are buckets: 2 to the power of kBucketBits, of 8 bytes each.
template <class T, unsigned kBucketBits = 8>
class KeyTable {
 public:
  KeyTable() = default;
  KeyTable(const KeyTable&) = delete;
  KeyTable& operator=(const KeyTable&) = delete;

  // Null if there is no entry, or if a change got in the way.
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

  // Null if there is no entry.
  T* FindLocked(std::uint64_t key) const {
    const std::lock_guard<std::mutex> guard(mutex_);
    const Node* node = FindNode(key);
    return node != nullptr ? node->value.load() : nullptr;
  }

  // Adds or replaces the entry of `key`; `value` is not null. Errors:
  // std::bad_alloc.
  void Insert(std::uint64_t key, T* value) {
    const std::lock_guard<std::mutex> guard(mutex_);
    if (Node* node = FindNode(key)) {
      node->value.store(value, std::memory_order_release);
      return;
    }
    if (spare_.empty()) {
      // Remove never allocates. By doubling: reserve() takes just what it is
      // asked for.
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

  // Removes every entry whose key `is_meant` says yes to and calls `visit` with
  // its value, in no order and without the lock. Uses no heap. An entry that
  // somebody inserts meanwhile may stay.
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
  // Far above any chain; only a reader chased by endless changes gets there.
  static constexpr int kMaxSteps = 1 << 16;

  static std::size_t Bucket(std::uint64_t key) {
    // Fibonacci hashing; the high bits are the well-mixed ones.
    return static_cast<std::size_t>((key * 0x9e3779b97f4a7c15U) >>
                                    (64 - kBucketBits));
  }
  // Removes the first of the chain that is meant; null if none is.
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
  std::vector<Node*> spare_;                  // in no chain; likewise
};

}  // namespace strata

#endif  // STRATA_FACADE_KEY_TABLE_H_
