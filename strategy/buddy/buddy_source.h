#ifndef STRATA_STRATEGY_BUDDY_BUDDY_SOURCE_H_
#define STRATA_STRATEGY_BUDDY_BUDDY_SOURCE_H_

#include <atomic>
#include <cstddef>
#include <memory>

#include "strata/allocation/chunks/chunk_pool.h"
#include "strata/allocation/failure.h"
#include "strata/allocation/streams/chain_stream.h"
#include "strata/strategy/buddy/buddy_sizes.h"

namespace strata {

// Allocates the memory of the buddy pools of one allocator, and decides how
// much.
//
// Model: the memory of the device is queried at the first allocation, not
//   before, and again for each chunk with a fraction of it as its size. If the
//   system refuses the wanted chunk, smaller ones are tried, down to the size
//   of the request. So a fraction leaves no memory unusable (paddle.md §5 A9,
//   B16).
// Errors: every refusal is a Failure; kLimit names the cap on pinned memory.
// Threads: any thread. Call it without a lock.
class BuddySource {
 public:
  struct Taken {
    Allocation* memory = nullptr;
    bool is_fallback = false;  // Smaller than the wanted chunk.
  };

  // `layer` is the name in failures.
  BuddySource(const char* layer, std::shared_ptr<ChunkPool> pool,
              std::shared_ptr<ChainStream> stream, const BuddySizes& sizes);

  const BuddySizes& sizes() const { return sizes_; }
  ChunkPool& pool() const { return *pool_; }
  const char* layer() const { return layer_; }

  // Larger requests are allocated from the system one by one; 0 before Measure.
  std::size_t max_block_bytes() const { return max_block_bytes_.load(); }
  // Computes max_block_bytes, once.
  bool Measure(Failure& failure) noexcept;

  // Allocates a chunk for a request of `size`.
  Taken TakeChunk(std::size_t size, bool is_first, Failure& failure) noexcept;
  // Allocates exactly `size`.
  Allocation* Take(std::size_t size, Failure& failure) noexcept;
  // Frees to the system if all work on the memory is done, else as Offer.
  // Returns the bytes freed to the system.
  std::size_t Give(Allocation* memory, bool is_done = true) noexcept;
  // Frees to the ChunkPool, which counts the memory as held by no strategy.
  void Offer(Allocation* memory) noexcept;

  Failure Refusal(Failure::Reason reason, const Request& request) const;

 private:
  // The bytes that may be allocated now; 0 on the host, which does not report
  // it.
  bool Available(std::size_t& available, Failure& failure) const noexcept;
  bool Claim(std::size_t bytes, Failure& failure) noexcept;

  const char* const layer_;
  const std::shared_ptr<ChunkPool> pool_;
  const std::shared_ptr<ChainStream> stream_;
  const BuddySizes sizes_;
  std::atomic<std::size_t> max_block_bytes_{0};
  std::atomic<std::size_t> held_bytes_{0};  // Includes requests in progress.
};

}  // namespace strata

#endif  // STRATA_STRATEGY_BUDDY_BUDDY_SOURCE_H_
