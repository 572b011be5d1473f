#ifndef STRATA_FACADE_POINTER_TABLE_H_
#define STRATA_FACADE_POINTER_TABLE_H_

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "strata/allocation/allocation.h"

namespace strata {

// Live allocations by their address.
//
// Model: a hash table of buckets, each one cache line: seven pointers, and a
//   byte of the hash for each of them. One operation compares all seven bytes.
//   An address whose bucket is full is stored in one of the next buckets. Every
//   bucket that it passed counts it, so that a search knows when to stop and a
//   removal leaves no tombstone. The address itself is read from the
//   allocation, which a free reads anyway. The table never releases memory.
// Threads: not thread-safe. The owner's lock guards it.
// Cost: mostly one cache line, and the line of the allocation. Only Larger
//   calls the heap.
// Source: F14 (Bronson and Shi, Facebook 2019): the bytes and the counts.
class PointerTable {
  struct Bucket;

 public:
  PointerTable() = default;

  // Whether there is no room for another allocation.
  bool is_full() const { return room_ == 0; }
  std::size_t size() const { return bucket_count() * kMostPerBucket - room_; }
  std::size_t bucket_count() const { return buckets_ ? mask_ + 1 : 0; }

  // An empty table with more room than one of `buckets` buckets.
  //
  // Errors: std::bad_alloc.
  static PointerTable Larger(std::size_t buckets);
  // Adds all allocations of `other`; there is room.
  void AddAll(const PointerTable& other) noexcept;

  // `data` is the address of `allocation`, which is not read. False, and
  // nothing is done, if the address is in the table. There is room.
  bool Insert(const void* data, Allocation* allocation) noexcept;
  // Null if the address is not in the table.
  Allocation* Find(const void* data) const noexcept;
  Allocation* Take(const void* data) noexcept;
  // Insert and Take for the case that the first bucket decides, which is most
  // of the time. False or null, and nothing is done, if it does not decide, or
  // if there is no room. `hash` is the hash of the address. Makes no call.
  bool InsertAtOnce(std::uint64_t hash, Allocation* allocation) noexcept {
    if (is_full()) return false;
    Bucket& bucket = buckets_[Home(hash)];
    if ((bucket.Like(hash) | bucket.passed()) != 0) return false;
    const std::uint64_t empty = ~bucket.bytes & kHighBits;
    if (empty == 0) return false;
    Put(bucket, LowestByte(empty), hash, allocation);
    return true;
  }
  Allocation* TakeAtOnce(std::uint64_t hash, const void* data) noexcept {
    if (buckets_ == nullptr) return nullptr;
    Bucket& bucket = buckets_[Home(hash)];
    const std::uint64_t like = bucket.Like(hash);
    if (like == 0) return nullptr;
    const std::size_t place = LowestByte(like);
    Allocation* const allocation = bucket.allocations[place];
    if (allocation->data() != data) return nullptr;
    Remove(bucket, place);
    return allocation;
  }
  // Prefetches the line that Insert, Find or Take of the address with this hash
  // reads first.
  void Prefetch(std::uint64_t hash) const noexcept {
    // Without buckets the address is invalid, which a prefetch ignores.
    const auto first = reinterpret_cast<std::uintptr_t>(buckets_.get());
    const std::uint64_t home = hash >> shift_;
    __builtin_prefetch(reinterpret_cast<void*>(first + home * sizeof(Bucket)),
                       1);
  }
  template <class Visitor>
  void ForEach(Visitor visit) const {
    for (std::size_t i = 0; i < bucket_count(); ++i) {
      for (std::size_t j = 0; j < kWidth; ++j) {
        if (buckets_[i].IsTaken(j)) visit(buckets_[i].allocations[j]);
      }
    }
  }

  // For tests: whether every allocation is found, and the counts are right.
  bool IsConsistent() const;

  // A bijection: only null has the hash 0. The high half is well mixed,
  // whatever the alignment of the address.
  static std::uint64_t Hash(const void* data) {
    // Fibonacci hashing. The factor is odd, so the function is invertible.
    const auto address = reinterpret_cast<std::uintptr_t>(data);
    return std::uint64_t{address} * 0x9e3779b97f4a7c15U;
  }

 private:
  static constexpr std::size_t kWidth = 7;
  // Of seven places per bucket. At this load one bucket in eight has passed an
  // address on.
  static constexpr std::size_t kMostPerBucket = 5;
  static constexpr std::uint64_t kLowBits = 0x0001010101010101U;
  static constexpr std::uint64_t kHighBits = kLowBits << 7;
  static constexpr int kPassedShift = 56;
  static constexpr std::uint64_t kMostPassed = 255;  // means 255 or more

  struct alignas(64) Bucket {
    // A byte per place: 0 if the place is empty, else Byte of the hash. The
    // highest byte counts the addresses that passed.
    std::uint64_t bytes = 0;
    std::array<Allocation*, kWidth> allocations{};

    bool IsTaken(std::size_t place) const {
      return ((bytes >> (8 * place + 7)) & 1) != 0;
    }
    // A mask with a high bit set for each place whose byte matches the hash.
    // The lowest set bit is exact. A higher one may be a false match, but never
    // an empty place.
    std::uint64_t Like(std::uint64_t hash) const {
      // Equal bytes are 0 in `unlike`. A 1 above a 0 looks like a 0, but an
      // empty place never does: its byte has the highest bit set here.
      const std::uint64_t unlike = bytes ^ (kLowBits * Byte(hash));
      return (unlike - kLowBits) & ~unlike & kHighBits;
    }
    std::uint64_t passed() const { return bytes >> kPassedShift; }
    void CountPassed() {
      if (passed() != kMostPassed) bytes += std::uint64_t{1} << kPassedShift;
    }
    void UncountPassed() {
      if (passed() != kMostPassed) bytes -= std::uint64_t{1} << kPassedShift;
    }
  };
  // Position of an address; `allocation` is null if it was not found.
  struct Position {
    std::size_t bucket = 0;
    std::size_t place = 0;
    Allocation* allocation = nullptr;
  };

  // The index of the byte that holds the lowest bit of `bits`.
  static std::size_t LowestByte(std::uint64_t bits) {
    return static_cast<unsigned>(std::countr_zero(bits)) / 8;
  }
  // Seven bits that Home uses only in huge tables, and one bit that is always
  // set.
  static std::uint64_t Byte(std::uint64_t hash) {
    return (hash >> 40 & 0x7f) | 0x80;
  }
  std::size_t Home(std::uint64_t hash) const {
    return static_cast<std::size_t>(hash >> shift_);
  }
  void Put(Bucket& bucket, std::size_t place, std::uint64_t hash,
           Allocation* allocation) noexcept {
    bucket.bytes |= Byte(hash) << (8 * place);
    bucket.allocations[place] = allocation;
    --room_;
  }
  void Remove(Bucket& bucket, std::size_t place) noexcept {
    bucket.bytes &= ~(std::uint64_t{0xff} << (8 * place));
    ++room_;
  }
  // The table has buckets; `hash` is the hash of the address.
  Position Search(std::uint64_t hash, const void* data) const noexcept;

  std::unique_ptr<Bucket[]> buckets_;
  std::size_t mask_ = 0;  // number of buckets, a power of two, minus 1
  std::size_t room_ = 0;  // allocations that can still be added
  int shift_ = 0;         // shifts a hash to as many bits as mask_ has
};

}  // namespace strata

#endif  // STRATA_FACADE_POINTER_TABLE_H_
