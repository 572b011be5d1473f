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
// Model: a hash table of buckets, each a cache line: seven pointers, and a byte
//   of the hash for each of them, compared all at once. What finds its bucket
//   full is in one of the next, and every bucket it passed counts it, so that a
//   search knows when to stop and a removal leaves nothing behind. The address
//   itself is read from the allocation, which who frees it needs anyway. Never
//   gives memory back.
// Threads: none; the owner's lock guards it.
// Cost: mostly one line, and that of the allocation. Only Larger calls the
//   heap.
// Source: F14 (Bronson and Shi, Facebook 2019): the bytes and the counts.
class PointerTable {
  struct Bucket;

 public:
  PointerTable() = default;

  // Whether there is no room for one more.
  bool is_full() const { return room_ == 0; }
  std::size_t size() const { return bucket_count() * kMostPerBucket - room_; }
  std::size_t bucket_count() const { return buckets_ ? mask_ + 1 : 0; }

  // An empty one with room for more than one of `buckets` buckets.
  //
  // Errors: std::bad_alloc.
  static PointerTable Larger(std::size_t buckets);
  // Adds all that are in `other`; there is room.
  void AddAll(const PointerTable& other) noexcept;

  // `data` is the address of `allocation`, which is not looked at. False, and
  // nothing is done, if the address is there; there is room.
  bool Insert(const void* data, Allocation* allocation) noexcept;
  // Null if it is not there.
  Allocation* Find(const void* data) const noexcept;
  Allocation* Take(const void* data) noexcept;
  // The same where the first bucket decides, which is most of the time: false,
  // or null, and nothing is done, also where it does not, or if there is no
  // room. `hash` is that of the address. Without a call.
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
  // Fetches what an Insert, a Find or a Take of the address with this hash will
  // look at.
  void Prefetch(std::uint64_t hash) const noexcept {
    // Where there are no buckets: an address that is none is no fault here.
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

  // Whether everything is found, and nothing else counted. For tests.
  bool IsConsistent() const;

  // No other address has the same, and only null has 0. Its high half is well
  // mixed, whatever the address is a multiple of.
  static std::uint64_t Hash(const void* data) {
    // Fibonacci hashing; by an odd number, so that it can be undone.
    const auto address = reinterpret_cast<std::uintptr_t>(data);
    return std::uint64_t{address} * 0x9e3779b97f4a7c15U;
  }

 private:
  static constexpr std::size_t kWidth = 7;
  // Per bucket, of seven: one bucket in eight has passed something on then.
  static constexpr std::size_t kMostPerBucket = 5;
  static constexpr std::uint64_t kLowBits = 0x0001010101010101U;
  static constexpr std::uint64_t kHighBits = kLowBits << 7;
  static constexpr int kPassedShift = 56;
  static constexpr std::uint64_t kMostPassed = 255;  // stands for more, too

  struct alignas(64) Bucket {
    // A byte for each place: 0 if it is empty, or else Byte of the hash. The
    // highest byte: how many passed.
    std::uint64_t bytes = 0;
    std::array<Allocation*, kWidth> allocations{};

    bool IsTaken(std::size_t place) const {
      return ((bytes >> (8 * place + 7)) & 1) != 0;
    }
    // The lowest byte that has its highest bit set is that of a place whose
    // byte is that of the hash; a place above it may be one whose byte is not,
    // but never an empty one.
    std::uint64_t Like(std::uint64_t hash) const {
      // Equal bytes are 0 in `unlike`. A 1 above a 0 is taken for one, but
      // never an empty place, whose byte has its highest bit set here.
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
  // Where an address is, if `allocation` is not null.
  struct Position {
    std::size_t bucket = 0;
    std::size_t place = 0;
    Allocation* allocation = nullptr;
  };

  // The byte that has the lowest bit of `bits`.
  static std::size_t LowestByte(std::uint64_t bits) {
    return static_cast<unsigned>(std::countr_zero(bits)) / 8;
  }
  // Seven bits that Home leaves out of all but huge tables, and one that is
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
  // The table has buckets; `hash` is that of the address.
  Position Search(std::uint64_t hash, const void* data) const noexcept;

  std::unique_ptr<Bucket[]> buckets_;
  std::size_t mask_ = 0;  // their number, a power of two, minus 1
  std::size_t room_ = 0;  // for so many more
  int shift_ = 0;         // that leaves as many bits of a hash as of mask_
};

}  // namespace strata

#endif  // STRATA_FACADE_POINTER_TABLE_H_
