#include "strata/facade/lookup/front_table.h"

namespace strata {

std::uint64_t FrontTable::NewVersion() noexcept {
  static constinit std::atomic<std::uint64_t> last{0};
  return ++last;
}

Front* FrontTable::FindLocked(std::uint64_t key) const {
  const std::lock_guard<std::mutex> guard(mutex_);
  const Node* node = FindNode(key);
  return node != nullptr ? node->front.load() : nullptr;
}

void FrontTable::Insert(std::uint64_t key, Front* front) {
  const std::lock_guard<std::mutex> guard(mutex_);
  if (Node* known = FindNode(key)) {
    known->front.store(front, std::memory_order_release);
    ChangeVersion();
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
  // The front before the key: a reader that sees the key finds its front.
  node->front.store(front, std::memory_order_release);
  node->key.store(key, std::memory_order_release);
  node->next.store(head.load(), std::memory_order_release);
  head.store(node, std::memory_order_release);
  ChangeVersion();
}

void FrontTable::Remove(std::uint64_t key) {
  TakeFrom(buckets_[Bucket(key)], ~std::uint64_t{0}, key);
  ChangeVersion();
}

Front* FrontTable::TakeFrom(std::atomic<Node*>& head, std::uint64_t mask,
                            std::uint64_t key) noexcept {
  const std::lock_guard<std::mutex> guard(mutex_);
  std::atomic<Node*>* link = &head;
  for (Node* node = link->load(); node != nullptr; node = link->load()) {
    if ((node->key.load() & mask) == key) {
      link->store(node->next.load(), std::memory_order_release);
      spare_.push_back(node);
      return node->front.load();
    }
    link = &node->next;
  }
  return nullptr;
}

FrontTable::Node* FrontTable::FindNode(std::uint64_t key) const noexcept {
  Node* node = buckets_[Bucket(key)].load();
  while (node != nullptr && node->key.load() != key) node = node->next.load();
  return node;
}

}  // namespace strata
