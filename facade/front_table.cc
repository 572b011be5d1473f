#include "strata/facade/front_table.h"

namespace strata {

FrontTable::Node* FrontTable::FindNode(std::uint64_t key) const {
  Node* node = buckets_[Bucket(key)].load();
  while (node != nullptr && node->key.load() != key) node = node->next.load();
  return node;
}

Front* FrontTable::FindLocked(std::uint64_t key) const {
  const std::lock_guard<std::mutex> guard(mutex_);
  const Node* node = FindNode(key);
  return node != nullptr ? node->front.load() : nullptr;
}

void FrontTable::Insert(std::uint64_t key, Front* front) {
  const std::lock_guard<std::mutex> guard(mutex_);
  if (Node* node = FindNode(key)) {
    node->front.store(front, std::memory_order_release);
    return;
  }
  if (spare_.empty()) {
    nodes_.push_back(std::make_unique<Node>());
    // Remove never allocates.
    spare_.reserve(nodes_.size());
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
}

void FrontTable::Remove(std::uint64_t key) {
  const std::lock_guard<std::mutex> guard(mutex_);
  std::atomic<Node*>* link = &buckets_[Bucket(key)];
  for (Node* node = link->load(); node != nullptr; node = link->load()) {
    if (node->key.load() == key) {
      link->store(node->next.load(), std::memory_order_release);
      spare_.push_back(node);
      return;
    }
    link = &node->next;
  }
}

std::vector<Front*> FrontTable::Entries() const {
  const std::lock_guard<std::mutex> guard(mutex_);
  std::vector<Front*> entries;
  for (const std::atomic<Node*>& head : buckets_) {
    for (const Node* node = head.load(); node != nullptr;
         node = node->next.load()) {
      entries.push_back(node->front.load());
    }
  }
  return entries;
}

}  // namespace strata
