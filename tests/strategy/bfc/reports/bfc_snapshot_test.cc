// Snapshots of BfcAllocator: tf_bfc.md R44, R55, R57, and the data of its
// reports.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "strata/allocation/block_flags.h"
#include "strata/allocation/diagnostics/annotation.h"
#include "strata/strategy/bfc/arena/note.h"
#include "strata/strategy/bfc/bfc_allocator.h"
#include "strata/tests/strategy/bfc/bfc_fixture.h"

namespace strata {
namespace {

using ::testing::ElementsAre;

TEST(BfcSnapshotTest, ShowsEveryRegionAndEveryBlock) {
  BfcPool pool(BfcLimit(64 * kMiB));
  pool.Take(300);
  Allocation* hole = pool.Take(256);
  pool.Take(3 * kMiB);
  pool.Free(hole);
  const BfcSnapshot snapshot = pool.bfc().Snapshot();
  EXPECT_EQ(snapshot.allocator_name, "bfc");
  EXPECT_EQ(snapshot.place, DevicePlace(0));
  EXPECT_EQ(snapshot.memory_limit_bytes, 64 * kMiB);
  EXPECT_EQ(snapshot.growth_hint_bytes, 8 * kMiB);
  EXPECT_FALSE(snapshot.has_timing_counter);
  ASSERT_EQ(snapshot.regions.size(), 2U);
  EXPECT_EQ(snapshot.regions[0].first_chunk, 0U);
  EXPECT_EQ(snapshot.regions[0].chunk_count, 2U);
  EXPECT_EQ(snapshot.regions[1].first_chunk, 2U);
  EXPECT_EQ(snapshot.regions[1].size, 4 * kMiB);
  ASSERT_EQ(snapshot.chunks.size(), 3U);
  const BfcSnapshot::ChunkState& used = snapshot.chunks[0];
  EXPECT_TRUE(used.in_use);
  EXPECT_EQ(used.address, std::uintptr_t{1} << 40);
  EXPECT_EQ(used.size, 512U);
  EXPECT_EQ(used.requested_bytes, 300U);
  EXPECT_EQ(used.bin, -1);
  EXPECT_EQ(used.allocation_id, 1);
  const BfcSnapshot::ChunkState& free = snapshot.chunks[1];
  EXPECT_FALSE(free.in_use);
  EXPECT_EQ(free.size, 2 * kMiB - 512);
  EXPECT_EQ(free.requested_bytes, 0U);
  EXPECT_EQ(free.bin, 12);
  EXPECT_EQ(free.allocation_id, -1);
  // The calls so far: a region, two allocations, a region, an allocation, a
  // free.
  EXPECT_EQ(snapshot.action_count, 6U);
  EXPECT_EQ(used.action_count, 2U);
  EXPECT_EQ(free.action_count, 6U);
  EXPECT_TRUE(snapshot.size_history.empty());
}

TEST(BfcSnapshotTest, AnEmptyPoolHasNothingToShow) {
  BfcPool pool(BfcLimit(kMiB));
  const BfcSnapshot snapshot = pool.bfc().Snapshot();
  EXPECT_TRUE(snapshot.regions.empty());
  EXPECT_TRUE(snapshot.chunks.empty());
  EXPECT_EQ(snapshot.action_count, 0U);
}

BfcOptions Annotated(std::size_t limit_bytes) {
  BfcOptions options = BfcLimit(limit_bytes);
  options.keep_annotations = true;
  return options;
}

TEST(BfcSnapshotTest, NamesWhoAllocated) {  // R57
  BfcPool pool(Annotated(kMiB));
  Allocation* freed = nullptr;
  {
    SetAnnotationStep(7);
    const ScopedAnnotation train("train");
    const ScopedAnnotation op("MatMul", "k=3");
    pool.Take(256);
    freed = pool.Take(256);
    SetAnnotationStep(-1);
  }
  pool.Take(256);
  pool.Free(freed);
  const BfcSnapshot snapshot = pool.bfc().Snapshot();
  ASSERT_EQ(snapshot.chunks.size(), 4U);
  EXPECT_EQ(snapshot.chunks[0].annotation, "train / MatMul{k=3}");
  EXPECT_EQ(snapshot.chunks[0].op_name, "MatMul");
  EXPECT_EQ(snapshot.chunks[0].step_id, 7);
  for (const std::size_t i : {1U, 2U, 3U}) {
    EXPECT_EQ(snapshot.chunks[i].annotation, "");
    EXPECT_EQ(snapshot.chunks[i].step_id, -1);
  }
  EXPECT_EQ(pool.bfc().hit_path(), nullptr);
}

// A block that the user freed, but that has not reached the allocator.
TEST(BfcSnapshotTest, KnowsWhatIsDeferred) {
  BfcPool pool(Annotated(kMiB));
  Allocation* one = pool.Take(256);
  pool.Take(512);
  RemoveFlag(*one->block(), kBlockLive);
  const BfcSnapshot snapshot = pool.bfc().Snapshot();
  EXPECT_TRUE(snapshot.chunks[0].in_use);
  EXPECT_TRUE(snapshot.chunks[0].deferred);
  EXPECT_FALSE(snapshot.chunks[1].deferred);
  EXPECT_FALSE(snapshot.chunks[2].deferred);
  AddFlag(*one->block(), kBlockLive);
}

TEST(BfcSnapshotTest, KeepsTheLastSizes) {
  BfcPool pool(Annotated(kMiB));
  Allocation* one = pool.Take(256);
  pool.Take(512);
  pool.Free(one);
  const BfcSnapshot snapshot = pool.bfc().Snapshot();
  std::vector<std::size_t> sizes;
  std::vector<std::uint64_t> actions;
  for (const BfcSnapshot::SizeAt& entry : snapshot.size_history) {
    actions.push_back(entry.action_count);
    sizes.push_back(entry.in_use_bytes);
  }
  EXPECT_THAT(sizes, ElementsAre(256, 768, 512));
  EXPECT_THAT(actions, ElementsAre(2, 3, 4));  // 1: the region
  for (int i = 0; i < 5000; ++i) pool.Free(pool.Take(256));
  const BfcSnapshot later = pool.bfc().Snapshot();
  EXPECT_EQ(later.size_history.size(), 4096U);
  EXPECT_EQ(later.size_history.back().action_count, later.action_count);
  EXPECT_EQ(later.size_history.front().action_count, later.action_count - 4095);
}

TEST(BfcAnnotationTest, LivesUntilItsLastHolderLetsGo) {
  EXPECT_EQ(BfcAnnotation::TakeCurrent(), nullptr);
  const ScopedAnnotation frame("f");
  const BfcAnnotation* annotation = BfcAnnotation::TakeCurrent();
  ASSERT_NE(annotation, nullptr);
  BfcAnnotation::Hold(annotation);
  BfcAnnotation::LetGo(annotation);
  BfcAnnotation::LetGo(nullptr);
  EXPECT_EQ(annotation->text, "f");
  EXPECT_EQ(annotation->op, "f");
  EXPECT_EQ(annotation->step, -1);
  BfcAnnotation::LetGo(annotation);
}

// Collects the snapshots of the sink.
struct Maps {
  explicit Maps(BfcOptions& options) {
    options.memory_map_sink = [this](const BfcSnapshot& snapshot) {
      EXPECT_EQ(HeldLocks(), 0);
      maps.push_back(snapshot);
    };
  }
  std::vector<BfcSnapshot> maps;
};

TEST(BfcMemoryMapTest, IsWrittenOnceUntilAsMuchIsMetAgain) {  // R55
  BfcOptions options = BfcLimit(4 * kMiB);
  Maps maps(options);
  BfcPool pool(options);
  pool.Take(256);
  EXPECT_EQ(pool.Take(8 * kMiB), nullptr);
  ASSERT_EQ(maps.maps.size(), 1U);
  EXPECT_EQ(maps.maps[0].chunks.size(), 2U);
  // Attempts with this size, or more, report nothing new.
  EXPECT_EQ(pool.Take(8 * kMiB), nullptr);
  EXPECT_EQ(pool.Take(9 * kMiB), nullptr);
  pool.Take(256);
  EXPECT_EQ(pool.Take(8 * kMiB), nullptr);
  EXPECT_EQ(maps.maps.size(), 1U);
  EXPECT_EQ(pool.Take(5 * kMiB), nullptr);
  EXPECT_EQ(maps.maps.size(), 2U);
}

TEST(BfcMemoryMapTest, IsWrittenAgainForTheNextExhaustion) {
  BfcOptions options = BfcLimit(4 * kMiB);
  Maps maps(options);
  BfcPool pool(options);
  Allocation* one = pool.Take(kMiB);
  Allocation* two = pool.Take(kMiB);
  EXPECT_EQ(pool.Take(3 * kMiB), nullptr);
  EXPECT_EQ(maps.maps.size(), 1U);
  pool.Free(one);
  pool.Free(two);
  Allocation* met = pool.Take(3 * kMiB);
  EXPECT_NE(met, nullptr);
  EXPECT_EQ(pool.Take(3 * kMiB), nullptr);
  EXPECT_EQ(maps.maps.size(), 2U);
}

TEST(BfcMemoryMapTest, IsNotWrittenForQuietRequests) {  // R44
  BfcOptions options = BfcLimit(4 * kMiB);
  Maps maps(options);
  BfcPool pool(options);
  EXPECT_EQ(pool.Take(Request{8 * kMiB, 0, kNoRetry}), nullptr);
  EXPECT_EQ(pool.Take(Request{8 * kMiB, 0, kNoGrowth}), nullptr);
  EXPECT_TRUE(maps.maps.empty());
}

// With a ladder, an attempt is the last one only after all rungs.
TEST(BfcMemoryMapTest, IsWrittenWhenNoRungHasHelped) {
  BfcOptions options = BfcLimit(4 * kMiB);
  options.garbage_collection = false;
  Maps maps(options);
  BfcPool pool(options, {}, std::make_shared<Reclaimer>());
  pool.Free(pool.Take(kMiB));
  Failure failure;
  // The ladder releases the idle region, which is enough.
  const AllocationPtr met =
      pool.bfc().AllocateOrNull(Request{3 * kMiB}, failure);
  ASSERT_NE(met, nullptr);
  EXPECT_TRUE(maps.maps.empty());
  EXPECT_EQ(pool.bfc().AllocateOrNull(Request{3 * kMiB}, failure), nullptr);
  EXPECT_EQ(maps.maps.size(), 1U);
}

// A callback is a rung too, whatever its time of registration and its priority.
TEST(BfcMemoryMapTest, IsNotWrittenIfACallbackHelps) {
  struct FreesIt : Reclaimer::Source {
    std::size_t ReclaimableBytes(bool /*of_limit*/) const noexcept override {
      return 0;
    }
    std::size_t Reclaim(Stream /*stream*/,
                        std::size_t /*bytes*/) noexcept override {
      if (block == nullptr) return 0;
      block.reset();
      return 3 * kMiB;
    }
    AllocationPtr block;
  };
  BfcOptions options = BfcLimit(4 * kMiB);
  Maps maps(options);
  BfcPool pool(options, {}, std::make_shared<Reclaimer>());
  Failure failure;
  FreesIt callback;
  callback.block = pool.bfc().AllocateOrNull(Request{3 * kMiB}, failure);
  const Reclaimer::Registration registration =
      pool.pool().RegisterReclaim(Reclaimer::Step::kCallbacks, callback,
                                  /*priority=*/-1000);
  EXPECT_NE(pool.bfc().AllocateOrNull(Request{4 * kMiB}, failure), nullptr);
  EXPECT_TRUE(maps.maps.empty());
}

// A request without the ladder leaves no pending report for the next climb.
TEST(BfcMemoryMapTest, IsNotWrittenForAnEarlierQuietRequest) {  // R44
  BfcOptions options = BfcLimit(4 * kMiB);
  Maps maps(options);
  BfcPool pool(options, {}, std::make_shared<Reclaimer>());
  Failure failure;
  EXPECT_EQ(pool.bfc().AllocateOrNull(Request{8 * kMiB}, failure), nullptr);
  EXPECT_EQ(maps.maps.size(), 1U);
  EXPECT_EQ(pool.bfc().AllocateOrNull(Request{5 * kMiB, 0, kNoRetry}, failure),
            nullptr);
  EXPECT_EQ(pool.bfc().AllocateOrNull(Request{8 * kMiB}, failure), nullptr);
  EXPECT_EQ(maps.maps.size(), 1U);
}

TEST(BfcMemoryMapTest, ASinkThatThrowsChangesNothing) {
  BfcOptions options = BfcLimit(kMiB);
  options.memory_map_sink = [](const BfcSnapshot& /*snapshot*/) {
    throw std::runtime_error("disk full");
  };
  BfcPool pool(options);
  EXPECT_EQ(pool.Take(2 * kMiB), nullptr);
  EXPECT_EQ(pool.failure().reason, Failure::Reason::kLimit);
  EXPECT_NE(pool.Take(256), nullptr);
}

}  // namespace
}  // namespace strata
