#ifndef STRATA_PLATFORM_SIM_BYTES_KEPT_BYTES_H_
#define STRATA_PLATFORM_SIM_BYTES_KEPT_BYTES_H_

#include <atomic>
#include <cstdint>
#include <list>
#include <map>
#include <vector>

#include "strata/platform/sim/memory/frame_table.h"

namespace strata::sim {

// Number of copies from device or managed memory to the host.
//
// Threads: any thread.
struct ReadCounter {
  std::atomic<std::uint64_t> all{0};
  // Copies of bytes that the program itself wrote, as KeptBytes knows.
  std::atomic<std::uint64_t> written{0};
};

// The bytes of small writes to device memory that stores no other bytes.
//
// Model: a written byte is known until it is dropped. When the writes take more
//   than kMostBytes of the host, the oldest are dropped. Offsets count from the
//   start of the device's memory.
//   Kernels are not simulated, and the program's own allocator may reuse memory
//   without a call. So a kernel may have written its result over any known
//   bytes. After a kernel ran, a read still returns the bytes of an older
//   write only if it reads exactly the range of that write, and more than
//   kNumberBytes. So a size or a count that a kernel computes is never read as
//   a part of an older write.
// Threads: externally synchronised.
// Cost: O(log writes), plus the writes in the range.
class KeptBytes {
 public:
  // The size of the largest copy, fill or work that is kept.
  static constexpr std::uint64_t kMostWriteBytes = 4096;
  static constexpr std::uint64_t kMostBytes = std::uint64_t{16} << 20;
  // An estimate of the memory that a write takes beside its bytes.
  static constexpr std::uint64_t kBytesPerWrite = 160;

  // The largest number that a kernel computes, in bytes.
  static constexpr std::uint64_t kNumberBytes = 8;

  // Consecutive known bytes of one write.
  struct Part {
    std::uint64_t offset;
    const char* bytes;
    std::uint64_t count;
    bool is_whole;  // all bytes of the write
    bool is_new;    // no kernel ran after the write
  };

  bool empty() const { return writes_.empty(); }

  // Replaces the `count` > 0 bytes from `offset` on.
  void Write(std::uint64_t offset, const char* bytes, std::uint64_t count);
  // Like Write, for a part that was found here or in the memory of another
  // device, and copied: `bytes` are its bytes.
  void Move(const Part& part, std::uint64_t offset, const char* bytes);
  // A kernel runs now, and nothing says which memory it writes.
  void NoteKernel() { ++kernels_; }
  // The bytes of `run` are unknown from now on.
  void Drop(const PhysicalRun& run);
  // The known bytes in `run`, by offset. Valid until the next Write or Drop.
  std::vector<Part> Find(const PhysicalRun& run) const;
  // Like Find, for a copy of `run` to the host.
  std::vector<Part> FindRead(const PhysicalRun& run) const;
  std::uint64_t bytes() const { return bytes_; }

 private:
  using Ages = std::list<std::uint64_t>;  // offsets of writes, the oldest first
  struct Bytes {
    std::vector<char> bytes;
    bool is_whole = true;
    std::uint64_t kernels = 0;  // that ran before the write
    Ages::iterator age = {};
  };
  using Writes = std::map<std::uint64_t, Bytes>;  // by offset, no two overlap

  // The first write that ends behind `offset`.
  Writes::const_iterator FirstBehind(std::uint64_t offset) const;
  void Add(std::uint64_t offset, Bytes bytes, Ages::iterator before);
  // Removes the write.
  Bytes Take(Writes::const_iterator write);

  Writes writes_;
  Ages ages_;
  std::uint64_t kernels_ = 1;  // kernels that ran so far, plus one
  std::uint64_t bytes_ = 0;    // memory of the host that the writes take
};

}  // namespace strata::sim

#endif  // STRATA_PLATFORM_SIM_BYTES_KEPT_BYTES_H_
