#include "strata/strategy/blocks/exact_index.h"

#include <new>
#include <utility>

namespace strata {

void BlockQueue::PushBack(Block* block) {
  block->previous = back_;
  block->next = nullptr;
  (back_ != nullptr ? back_->next : front_) = block;
  back_ = block;
}

void BlockQueue::Remove(Block* block) {
  (block->previous != nullptr ? block->previous->next : front_) = block->next;
  (block->next != nullptr ? block->next->previous : back_) = block->previous;
  block->previous = block->next = nullptr;
}

ExactIndex::Sizes ExactIndex::MakeSpare() noexcept {
  Sizes spare;
  try {
    spare.emplace();
  } catch (const std::bad_alloc&) {
    // Empty.
  }
  return spare;
}

void ExactIndex::Open(std::size_t bytes, Sizes& spare) {
  auto list = sizes_.find(bytes);
  if (list == sizes_.end()) {
    Sizes::node_type node = spare.extract(spare.begin());
    node.key() = bytes;
    list = sizes_.insert(std::move(node)).position;
  }
  ++list->second.opened;
}

void ExactIndex::Close(std::size_t bytes, Sizes& emptied) {
  const auto list = sizes_.find(bytes);
  if (--list->second.opened == 0) emptied.insert(sizes_.extract(list));
}

void ExactIndex::Insert(Block* block) {
  List& list = sizes_.find(block->size)->second;
  block->free_previous = nullptr;
  block->free_next = list.newest;
  if (list.newest != nullptr) list.newest->free_previous = block;
  list.newest = block;
  queue_.PushBack(block);
  ++count_;
  total_bytes_ += block->size;
}

void ExactIndex::Remove(List& list, Block* block) {
  (block->free_previous != nullptr ? block->free_previous->free_next
                                   : list.newest) = block->free_next;
  if (block->free_next != nullptr) {
    block->free_next->free_previous = block->free_previous;
  }
  queue_.Remove(block);
  --count_;
  total_bytes_ -= block->size;
}

Block* ExactIndex::Take(std::size_t bytes) {
  const auto list = sizes_.find(bytes);
  if (list == sizes_.end() || list->second.newest == nullptr) return nullptr;
  Block* block = list->second.newest;
  Remove(list->second, block);
  return block;
}

Block* ExactIndex::TakeOldest() {
  Block* block = queue_.front();
  if (block != nullptr) Remove(sizes_.find(block->size)->second, block);
  return block;
}

bool ExactIndex::IsConsistent() const {
  std::size_t count = 0;
  std::size_t bytes = 0;
  for (const auto& [size, list] : sizes_) {
    if (list.opened == 0) return false;
    std::size_t here = 0;
    const Block* previous = nullptr;
    for (const Block* block = list.newest; block != nullptr;
         block = block->free_next) {
      if (block->size != size || block->free_previous != previous) {
        return false;
      }
      previous = block;
      ++here;
    }
    if (here > list.opened) return false;
    count += here;
    bytes += here * size;
  }
  std::size_t queued = 0;
  const Block* last = nullptr;
  for (const Block* block = queue_.front(); block != nullptr;
       block = block->next) {
    if (block->previous != last) return false;
    last = block;
    ++queued;
  }
  return last == queue_.back() && count == count_ && queued == count_ &&
         bytes == total_bytes_;
}

}  // namespace strata
