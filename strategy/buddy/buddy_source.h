#ifndef STRATA_STRATEGY_BUDDY_BUDDY_SOURCE_H_
#define STRATA_STRATEGY_BUDDY_BUDDY_SOURCE_H_

#include <atomic>
#include <cstddef>
#include <memory>

#include "strata/allocation/chain_stream.h"
#include "strata/allocation/chunk_pool.h"
#include "strata/allocation/failure.h"
#include "strata/strategy/buddy/buddy_sizes.h"

namespace strata {

// Where the buddy pools of one allocator get their memory, and how much at a
// time.
//
// Model: what the device has is asked at the first allocation, not before, and
//   again for each chunk whose size is a fraction of it. If the wanted chunk is
//   not to be had, less is tried, down to what the request needs: so memory
//   that a fraction would leave unused can be had (paddle.md §5 A9, B16).
// Errors: every refusal is a Failure; kLimit names the cap on pinned memory.
// Threads: any thread. Call it without a lock.
class BuddySource {
 public:
  struct Taken {
    Allocation* memory = nullptr;
    bool is_fallback = false;  // less than was wanted
  };

  // `layer` is the name for failures.
  BuddySource(const char* layer, std::shared_ptr<ChunkPool> pool,
              std::shared_ptr<ChainStream> stream, const BuddySizes& sizes);

  const BuddySizes& sizes() const { return sizes_; }
  ChunkPool& pool() const { return *pool_; }
  const char* layer() const { return layer_; }

  // Larger requests go to the system one by one; 0: not known before Measure.
  std::size_t max_block_bytes() const { return max_block_bytes_.load(); }
  // Finds it out, once.
  bool Measure(Failure& failure) noexcept;

  // A chunk for a request of `size`.
  Taken TakeChunk(std::size_t size, bool is_first, Failure& failure) noexcept;
  // Exactly `size`.
  Allocation* Take(std::size_t size, Failure& failure) noexcept;
  // To the system, if all work on it is done, else as Offer. Returns the bytes
  // that the system has got.
  std::size_t Give(Allocation* memory, bool is_done = true) noexcept;
  // To the ChunkPool, which counts it as held by nobody.
  void Offer(Allocation* memory) noexcept;

  Failure Refusal(Failure::Reason reason, const Request& request) const;

 private:
  // What can be taken now; 0 on the host, which does not say.
  bool Available(std::size_t& available, Failure& failure) const noexcept;
  bool Claim(std::size_t bytes, Failure& failure) noexcept;

  const char* const layer_;
  const std::shared_ptr<ChunkPool> pool_;
  const std::shared_ptr<ChainStream> stream_;
  const BuddySizes sizes_;
  std::atomic<std::size_t> max_block_bytes_{0};
  std::atomic<std::size_t> held_bytes_{0};  // and asked for just now
};

}  // namespace strata

#endif  // STRATA_STRATEGY_BUDDY_BUDDY_SOURCE_H_
