#ifndef STRATA_STRATEGY_BLOCKS_CHUNK_PTR_H_
#define STRATA_STRATEGY_BLOCKS_CHUNK_PTR_H_

#include <memory>
#include <new>

#include "strata/allocation/allocation.h"
#include "strata/allocation/record_slab.h"

namespace strata {

// A Chunk in the memory of a record, which is as large. Avoids the cost of
// aligned heap memory, and the gaps that it leaves.
//
// Threads: any thread.
// Cost: RecordSlab::TakeMemory and GiveMemory.
struct ChunkDeleter {
  void operator()(Chunk* chunk) const noexcept {
    chunk->~Chunk();
    RecordSlab::Instance().GiveMemory(chunk);
  }
};
using ChunkPtr = std::unique_ptr<Chunk, ChunkDeleter>;

// Null if the host is out of memory.
inline ChunkPtr MakeChunk() noexcept {
  static_assert(sizeof(Chunk) <= sizeof(Block));
  static_assert(alignof(Chunk) <= alignof(Block));
  void* memory = RecordSlab::Instance().TakeMemory();
  return ChunkPtr(memory != nullptr ? new (memory) Chunk() : nullptr);
}

}  // namespace strata

#endif  // STRATA_STRATEGY_BLOCKS_CHUNK_PTR_H_
