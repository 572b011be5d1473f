#ifndef STRATA_TOOLS_PEERS_PADDLE_AUTO_GROWTH_H_
#define STRATA_TOOLS_PEERS_PADDLE_AUTO_GROWTH_H_

#include <atomic>
#include <cstddef>
#include <list>
#include <map>
#include <utility>

#include "strata/platform/device.h"
#include "strata/platform/memory_types.h"

namespace strata {

// The bytes taken from the device by all allocators of a PaddlePeer.
struct PaddleReserved {
  std::atomic<std::size_t> bytes{0};
  std::atomic<std::size_t> peak_bytes{0};

  void Add(std::size_t more);
};

// The allocator that a PaddlePeer has for each stream: best fit in chunks that
// are as large as the request that asked for them.
//
// Errors: std::runtime_error if the device refuses a call for another reason
//   than lack of memory.
// Threads: any thread; the device is called under the lock, as in the original.
// Source: paddle.md §3.3.
class PaddleAutoGrowth {
 public:
  struct Chunk;
  struct Block {
    DevicePtr address = 0;
    std::size_t bytes = 0;
    bool is_free = false;
    Chunk* chunk = nullptr;
  };
  using BlockList = std::list<Block>;
  struct Chunk {
    DevicePtr address = 0;
    BlockList blocks;  // in the order of their addresses
  };
  // The object that stands for a block in use.
  struct Handle {
    BlockList::iterator block;
  };

  // Chunks have at least `chunk_bytes`.
  PaddleAutoGrowth(Device& device, std::size_t chunk_bytes,
                   PaddleReserved* reserved);
  PaddleAutoGrowth(const PaddleAutoGrowth&) = delete;
  PaddleAutoGrowth& operator=(const PaddleAutoGrowth&) = delete;
  ~PaddleAutoGrowth();

  // Null if there is no memory left even after FreeIdleChunks.
  Handle* Allocate(std::size_t bytes);
  void Free(Handle* handle);
  // Gives chunks without a block in use back; returns their bytes.
  std::size_t FreeIdleChunks();

 private:
  // Waits by asking again and again.
  class SpinLock {
   public:
    void
    lock() {  // NOLINT(readability-identifier-naming): as std::mutex has it
      while (taken_.test_and_set(std::memory_order_acquire)) {
        while (taken_.test(std::memory_order_relaxed)) {
        }
      }
    }
    void unlock() {  // NOLINT(readability-identifier-naming)
      taken_.clear(std::memory_order_release);
    }

   private:
    std::atomic_flag taken_;
  };
  using Key = std::pair<std::size_t, DevicePtr>;

  static Key KeyOf(const Block& block) { return {block.bytes, block.address}; }
  // Leaves the low part of `free_block` free; returns the high part.
  BlockList::iterator TakeHighEnd(BlockList::iterator free_block,
                                  std::size_t bytes);
  // Returns false if the device has no memory.
  bool AddChunk(std::size_t bytes, BlockList::iterator* block);
  std::size_t FreeIdleChunksLocked();

  Device& device_;
  const std::size_t chunk_bytes_;
  PaddleReserved* const reserved_;
  SpinLock lock_;
  std::list<Chunk> chunks_;                  // guarded by lock_
  std::map<Key, BlockList::iterator> free_;  // guarded by lock_
};

}  // namespace strata

#endif  // STRATA_TOOLS_PEERS_PADDLE_AUTO_GROWTH_H_
