#include "strata/strategy/blocks/chunk_ptr.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstring>

#include "strata/allocation/record_slab.h"
#include "strata/tests/testing/heap_call_counter.h"

namespace strata {
namespace {

TEST(ChunkPtrTest, HasTheMemoryOfARecordWhichIsBlankAfterwards) {
  RecordSlab& slab = RecordSlab::Instance();
  slab.Give(slab.Take());
  const std::size_t before = slab.taken();
  const HeapCallCounter heap;
  ChunkPtr chunk = MakeChunk();
  EXPECT_EQ(heap.calls(), 0U);
  ASSERT_NE(chunk, nullptr);
  EXPECT_EQ(slab.taken(), before + 1);
  EXPECT_EQ(chunk->memory, nullptr);
  EXPECT_EQ(chunk->owner, nullptr);
  EXPECT_EQ(chunk->loans, 0U);

  const void* const memory = chunk.get();
  std::memset(static_cast<void*>(chunk.get()), 0xff, sizeof(Chunk));
  chunk.reset();
  EXPECT_EQ(slab.taken(), before);
  Block* record = slab.Take();
  EXPECT_EQ(static_cast<void*>(record), memory);
  EXPECT_EQ(record->data, nullptr);
  EXPECT_EQ(record->size, 0U);
  EXPECT_EQ(record->chunk, nullptr);
  EXPECT_EQ(record->flags, 0);
  EXPECT_FALSE(record->is_free);
  slab.Give(record);
}

TEST(ChunkPtrTest, IsNullWhenTheHostIsOutOfMemory) {
  if (!HeapFailure::is_possible()) GTEST_SKIP() << "a sanitizer has the heap";
  RecordSlab& slab = RecordSlab::Instance();
  // All records of the slab.
  RecordList all;
  for (std::size_t count = 0; count == all.size(); ++count) {
    slab.FillFromStock(all, count + 1);
  }
  {
    const HeapFailure no_memory;
    EXPECT_EQ(MakeChunk(), nullptr);
  }
  slab.Drain(all);
}

}  // namespace
}  // namespace strata
