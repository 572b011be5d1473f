#include "strata/facade/pointer_table.h"

#include <algorithm>
#include <vector>

namespace strata {

// Inlined by force: the call costs more than the search.
[[gnu::always_inline]] inline PointerTable::Position PointerTable::Search(
    std::uint64_t hash, const void* data) const noexcept {
  std::size_t index = Home(hash);
  // The loop ends even if every bucket has passed an address on.
  for (std::size_t steps = 0; steps <= mask_; ++steps) {
    const Bucket& bucket = buckets_[index];
    std::uint64_t like = bucket.Like(hash);
    for (; like != 0; like &= like - 1) {
      const std::size_t place = LowestByte(like);
      Allocation* const allocation = bucket.allocations[place];
      if (allocation->data() == data) return {index, place, allocation};
    }
    if (bucket.passed() == 0) break;
    index = (index + 1) & mask_;
  }
  return {};
}

Allocation* PointerTable::Find(const void* data) const noexcept {
  return buckets_ == nullptr ? nullptr : Search(Hash(data), data).allocation;
}

bool PointerTable::Insert(const void* data, Allocation* allocation) noexcept {
  const std::uint64_t hash = Hash(data);
  if (Search(hash, data).allocation != nullptr) return false;
  std::size_t index = Home(hash);
  while (true) {
    Bucket& bucket = buckets_[index];
    const std::uint64_t empty = ~bucket.bytes & kHighBits;
    if (empty != 0) {
      Put(bucket, LowestByte(empty), hash, allocation);
      return true;
    }
    bucket.CountPassed();
    index = (index + 1) & mask_;
  }
}

Allocation* PointerTable::Take(const void* data) noexcept {
  if (buckets_ == nullptr) return nullptr;
  const std::uint64_t hash = Hash(data);
  const Position found = Search(hash, data);
  if (found.allocation == nullptr) return nullptr;
  for (std::size_t index = Home(hash); index != found.bucket;
       index = (index + 1) & mask_) {
    buckets_[index].UncountPassed();
  }
  Remove(buckets_[found.bucket], found.place);
  return found.allocation;
}

PointerTable PointerTable::Larger(std::size_t buckets) {
  constexpr std::size_t kFirstBuckets = 4;
  const std::size_t count = std::max(kFirstBuckets, 2 * buckets);
  PointerTable larger;
  larger.buckets_ = std::make_unique<Bucket[]>(count);
  larger.mask_ = count - 1;
  larger.room_ = count * kMostPerBucket;
  larger.shift_ = 64 - std::countr_zero(count);
  return larger;
}

void PointerTable::AddAll(const PointerTable& other) noexcept {
  other.ForEach([this](Allocation* allocation) {
    Insert(allocation->data(), allocation);
  });
}

bool PointerTable::IsConsistent() const {
  std::vector<std::uint64_t> passed(bucket_count());
  std::size_t found = 0;
  for (std::size_t i = 0; i < passed.size(); ++i) {
    for (std::size_t place = 0; place < kWidth; ++place) {
      if (!buckets_[i].IsTaken(place)) continue;
      const void* const data = buckets_[i].allocations[place]->data();
      const std::uint64_t hash = Hash(data);
      found += Search(hash, data).bucket == i;
      for (std::size_t j = Home(hash); j != i; j = (j + 1) & mask_) ++passed[j];
    }
  }
  for (std::size_t i = 0; i < passed.size(); ++i) {
    const std::uint64_t counted = buckets_[i].passed();
    if (counted != passed[i] && counted != kMostPassed) return false;
  }
  return found == size();
}

}  // namespace strata
