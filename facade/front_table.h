#ifndef STRATA_FACADE_FRONT_TABLE_H_
#define STRATA_FACADE_FRONT_TABLE_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

namespace strata {

class Front;

// Finds the front of a stream by a 64-bit key without taking a lock.
//
// Model: a hash table of chains whose nodes are never freed before the table,
//   only recycled. A reader that walks a chain while a node in it is recycled
//   may miss its key, never find a wrong one; a miss is repeated with the lock
//   held (FindLocked).
// Threads: any thread. Looking up a key while it is being removed is the
//   caller's error: he uses a stream that he says is destroyed.
// Cost: Find is a hash and two cache lines, up to a few hundred streams.
class FrontTable {
 public:
  FrontTable() = default;
  FrontTable(const FrontTable&) = delete;
  FrontTable& operator=(const FrontTable&) = delete;

  // Null if there is no entry, or if a change got in the way.
  Front* Find(std::uint64_t key) const {
    const Node* node = buckets_[Bucket(key)].load(std::memory_order_acquire);
    for (int steps = 0; node != nullptr && steps < kMaxSteps; ++steps) {
      if (node->key.load(std::memory_order_acquire) == key) {
        return node->front.load(std::memory_order_acquire);
      }
      node = node->next.load(std::memory_order_acquire);
    }
    return nullptr;
  }

  // Null if there is no entry.
  Front* FindLocked(std::uint64_t key) const;
  // Adds or replaces the entry of `key`.
  void Insert(std::uint64_t key, Front* front);
  void Remove(std::uint64_t key);
  // Every front once, in no order.
  std::vector<Front*> Entries() const;

 private:
  struct Node {
    std::atomic<std::uint64_t> key{0};
    std::atomic<Front*> front{nullptr};
    std::atomic<Node*> next{nullptr};
  };
  static constexpr std::size_t kBuckets = 256;
  // Far above any chain; only a reader chased by endless changes gets there.
  static constexpr int kMaxSteps = 1 << 16;

  static std::size_t Bucket(std::uint64_t key) {
    // Fibonacci hashing; the high bits are the well-mixed ones.
    return static_cast<std::size_t>((key * 0x9e3779b97f4a7c15U) >> 56);
  }
  Node* FindNode(std::uint64_t key) const;

  std::array<std::atomic<Node*>, kBuckets> buckets_{};
  mutable std::mutex mutex_;
  std::vector<std::unique_ptr<Node>> nodes_;  // all; guarded by mutex_
  std::vector<Node*> spare_;                  // in no chain; likewise
};

}  // namespace strata

#endif  // STRATA_FACADE_FRONT_TABLE_H_
