#ifndef STRATA_TOOLS_PEERS_PADDLE_PADDLE_AUTO_GROWTH_H_
#define STRATA_TOOLS_PEERS_PADDLE_PADDLE_AUTO_GROWTH_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <utility>

#include "strata/platform/device.h"
#include "strata/platform/memory_types.h"
#include "strata/tools/peers/paddle/paddle_allocator.h"

namespace strata::peers {

// The bytes that all allocators of a PaddlePeer hold from the device.
struct PaddleReserved {
  std::atomic<std::size_t> bytes{0};
  std::atomic<std::size_t> peak_bytes{0};

  void Add(std::size_t more);
};

// The strategy of each stream of a PaddlePeer: best fit in chunks. A chunk is
// as large as the request that caused it.
//
// Errors: PaddleOutOfMemory if there is no memory left even after
//   FreeIdleChunks; std::runtime_error if the device refuses a call for another
//   reason.
// Threads: any thread; the device is called under the lock, as in the original.
// Source: paddle.md §3.3.
class PaddleAutoGrowth final : public PaddleAllocator {
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
    BlockList blocks;  // in address order
  };
  // Chunks have at least `chunk_bytes`.
  PaddleAutoGrowth(Device& device, PaddlePlace place, std::size_t chunk_bytes,
                   PaddleReserved* reserved);
  ~PaddleAutoGrowth() override;

  // Releases chunks without a block in use; returns their bytes.
  std::size_t FreeIdleChunks();
  std::uint64_t allocations();

 protected:
  PaddleAllocation* AllocateImpl(std::size_t bytes) override;
  void FreeImpl(PaddleAllocation* allocation) override;

 private:
  // The allocation object of a block in use.
  class Object;
  using Key = std::pair<std::size_t, DevicePtr>;

  static Key KeyOf(const Block& block) { return {block.bytes, block.address}; }
  // Splits `free_block`: the low part remains free; returns the high part.
  BlockList::iterator TakeHighEnd(BlockList::iterator free_block,
                                  std::size_t bytes);
  // Returns false if the device has no memory.
  bool AddChunk(std::size_t bytes, BlockList::iterator* block);
  std::size_t FreeIdleChunksLocked();

  Device& device_;
  const PaddlePlace place_;
  const std::size_t chunk_bytes_;
  PaddleReserved* const reserved_;
  PaddleSpinLock lock_;
  // All below: guarded by lock_.
  std::list<Chunk> chunks_;
  std::map<Key, BlockList::iterator> free_;
  std::uint64_t allocations_ = 0;
};

}  // namespace strata::peers

#endif  // STRATA_TOOLS_PEERS_PADDLE_PADDLE_AUTO_GROWTH_H_
