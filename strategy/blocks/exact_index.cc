#include "strata/strategy/blocks/exact_index.h"

#include <cstdint>
#include <new>
#include <utility>

namespace strata {
namespace {

constexpr std::size_t kFirstBuckets = 64;

}  // namespace

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

ExactIndex::Supplies::~Supplies() {
  while (lists_ != nullptr) delete std::exchange(lists_, lists_->next);
}

bool ExactIndex::Supplies::Stock(std::size_t buckets) noexcept {
  if (lists_ == nullptr) lists_ = new (std::nothrow) List();
  if (buckets != 0) buckets_.reset(new (std::nothrow) List*[buckets]());
  // Without a new table, the chains of the old one get longer; no error.
  bucket_count_ = buckets_ != nullptr ? buckets : 0;
  return lists_ != nullptr;
}

ExactIndex::ExactIndex()
    : bucket_count_(kFirstBuckets),
      buckets_(std::make_unique<List*[]>(kFirstBuckets)) {}

ExactIndex::~ExactIndex() {
  for (std::size_t i = 0; i < bucket_count_; ++i) {
    List* list = buckets_[i];
    while (list != nullptr) delete std::exchange(list, list->next);
  }
}

std::size_t ExactIndex::MissingBuckets() const {
  return sizes_ < bucket_count_ ? 0 : 2 * bucket_count_;
}

std::size_t ExactIndex::BucketOf(std::size_t bytes) const {
  // Fibonacci hashing; the high bits are the well-mixed ones.
  const std::uint64_t hash = std::uint64_t{bytes} * 0x9e3779b97f4a7c15U;
  return static_cast<std::size_t>(hash >> 32) & (bucket_count_ - 1);
}

ExactIndex::List* ExactIndex::Find(std::size_t bytes) const {
  List* list = buckets_[BucketOf(bytes)];
  while (list != nullptr && list->bytes != bytes) list = list->next;
  return list;
}

void ExactIndex::Grow(Supplies& supplies) {
  // Another thread may have installed a larger table.
  if (supplies.bucket_count_ <= bucket_count_) return;
  std::swap(buckets_, supplies.buckets_);
  std::swap(bucket_count_, supplies.bucket_count_);
  for (std::size_t i = 0; i < supplies.bucket_count_; ++i) {
    List* list = supplies.buckets_[i];
    while (list != nullptr) {
      List* next = list->next;
      List*& bucket = buckets_[BucketOf(list->bytes)];
      list->next = std::exchange(bucket, list);
      list = next;
    }
  }
}

void ExactIndex::Open(std::size_t bytes, Supplies& supplies) {
  Grow(supplies);
  List* list = Find(bytes);
  if (list == nullptr) {
    list = std::exchange(supplies.lists_, supplies.lists_->next);
    list->bytes = bytes;
    List*& bucket = buckets_[BucketOf(bytes)];
    list->next = std::exchange(bucket, list);
    ++sizes_;
  }
  ++list->opened;
}

void ExactIndex::Close(std::size_t bytes, Supplies& supplies) {
  List** link = &buckets_[BucketOf(bytes)];
  while ((*link)->bytes != bytes) link = &(*link)->next;
  List* list = *link;
  if (--list->opened != 0) return;
  *link = list->next;
  list->next = std::exchange(supplies.lists_, list);
  --sizes_;
}

void ExactIndex::Insert(Block* block) {
  List* list = Find(block->size);
  block->free_previous = nullptr;
  block->free_next = list->newest;
  if (list->newest != nullptr) list->newest->free_previous = block;
  list->newest = block;
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
  List* list = Find(bytes);
  if (list == nullptr || list->newest == nullptr) return nullptr;
  Block* block = list->newest;
  Remove(*list, block);
  return block;
}

Block* ExactIndex::TakeOldest() {
  Block* block = queue_.front();
  if (block != nullptr) Remove(*Find(block->size), block);
  return block;
}

bool ExactIndex::IsConsistent() const {
  std::size_t sizes = 0;
  std::size_t count = 0;
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < bucket_count_; ++i) {
    for (const List* list = buckets_[i]; list != nullptr; list = list->next) {
      ++sizes;
      if (BucketOf(list->bytes) != i || list->opened == 0) return false;
      std::size_t here = 0;
      const Block* previous = nullptr;
      for (const Block* block = list->newest; block != nullptr;
           block = block->free_next) {
        if (block->size != list->bytes || block->free_previous != previous) {
          return false;
        }
        previous = block;
        ++here;
      }
      if (here > list->opened) return false;
      count += here;
      bytes += here * list->bytes;
    }
  }
  std::size_t queued = 0;
  const Block* last = nullptr;
  for (const Block* block = queue_.front(); block != nullptr;
       block = block->next) {
    if (block->previous != last) return false;
    last = block;
    ++queued;
  }
  return last == queue_.back() && sizes == sizes_ && count == count_ &&
         queued == count_ && bytes == total_bytes_;
}

}  // namespace strata
