#ifndef STRATA_PLATFORM_SIM_BYTES_KEPT_BYTES_H_
#define STRATA_PLATFORM_SIM_BYTES_KEPT_BYTES_H_

#include <cstdint>
#include <list>
#include <map>
#include <vector>

#include "strata/platform/sim/memory/frame_table.h"

namespace strata {

// The bytes of small writes to device memory that stores no other bytes.
//
// Model: a written byte is known until it is dropped. When the writes take more
//   than kMostBytes of the host, the oldest are dropped. Offsets count from the
//   start of the device's memory.
// Threads: externally synchronised.
// Cost: O(log writes), plus the writes in the range.
class KeptBytes {
 public:
  // The size of the largest copy, fill or work that is kept.
  static constexpr std::uint64_t kMostWriteBytes = 4096;
  static constexpr std::uint64_t kMostBytes = std::uint64_t{16} << 20;
  // An estimate of the memory that a write takes beside its bytes.
  static constexpr std::uint64_t kBytesPerWrite = 160;

  // Consecutive known bytes.
  struct Part {
    std::uint64_t offset;
    const char* bytes;
    std::uint64_t count;
  };

  bool empty() const { return writes_.empty(); }

  // Replaces the `count` > 0 bytes from `offset` on.
  void Write(std::uint64_t offset, const char* bytes, std::uint64_t count);
  // The bytes of `run` are unknown from now on.
  void Drop(const PhysicalRun& run);
  // The known bytes in `run`, by offset. Valid until the next Write or Drop.
  std::vector<Part> Find(const PhysicalRun& run) const;
  std::uint64_t bytes() const { return bytes_; }

 private:
  using Ages = std::list<std::uint64_t>;  // offsets of writes, the oldest first
  struct Bytes {
    std::vector<char> bytes;
    Ages::iterator age;
  };
  using Writes = std::map<std::uint64_t, Bytes>;  // by offset, no two overlap

  // The first write that ends behind `offset`.
  Writes::const_iterator FirstBehind(std::uint64_t offset) const;
  void Add(std::uint64_t offset, const char* bytes, std::uint64_t count,
           Ages::iterator before);
  // Removes the write. Returns its bytes.
  std::vector<char> Take(Writes::const_iterator write);

  Writes writes_;
  Ages ages_;
  std::uint64_t bytes_ = 0;  // memory of the host that the writes take
};

}  // namespace strata

#endif  // STRATA_PLATFORM_SIM_BYTES_KEPT_BYTES_H_
