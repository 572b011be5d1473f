#include <gtest/gtest.h>

#include <cstddef>
#include <initializer_list>
#include <string>
#include <utility>

#include "strata/strategy/bfc/reports/snapshot.h"
#include "strata/tests/strategy/bfc/reports/bfc_snapshot_builder.h"

namespace strata {
namespace {

// "**_" for {{2, '*'}, {1, '_'}}.
std::string Runs(std::initializer_list<std::pair<std::size_t, char>> runs) {
  std::string text;
  for (const auto& [count, character] : runs) text.append(count, character);
  return text;
}

// tf_bfc R52: 256, 512, 100, 2560 and 1000 bytes of 25600, then the 512 freed.
BfcSnapshot Golden() {
  BfcSnapshotBuilder builder;
  builder.Region()
      .InUse(256, 256)
      .Free(512)
      .InUse(100, 256)
      .InUse(2560, 2560)
      .InUse(1000, 1024)
      .Free(20992);
  return builder.snapshot();
}

TEST(BfcOccupancyTest, R52DrawsTheGoldenPool) {
  EXPECT_EQ(RenderOccupancy(Golden()),
            Runs({{1, '*'}, {2, '_'}, {15, '*'}, {82, '_'}}));
}

TEST(BfcOccupancyTest, R51FragmentationOfTheGoldenPool) {
  const BfcSnapshot golden = Golden();
  EXPECT_EQ(golden.numbers.bytes_in_use, 4096U);
  EXPECT_EQ(golden.numbers.largest_free_block_bytes, 20992U);
  EXPECT_DOUBLE_EQ(Fragmentation(golden.numbers), 512.0 / 21504);
  EXPECT_NEAR(Fragmentation(golden.numbers), 0.0238095, 1e-7);
}

TEST(BfcOccupancyTest, R52SlackShowsWhereNothingWasAskedFor) {
  BfcSnapshotBuilder builder;
  builder.Region().InUse(25344, 25600);
  EXPECT_EQ(RenderOccupancy(builder.snapshot()), Runs({{99, '*'}, {1, 'x'}}));
}

TEST(BfcOccupancyTest, R52RegionsFollowEachOtherWithoutTheGapBetween) {
  BfcSnapshotBuilder builder;
  builder.Region().InUse(5120, 5120).Region().Free(5120).InUse(10240, 10240);
  EXPECT_EQ(RenderOccupancy(builder.snapshot()),
            Runs({{25, '*'}, {25, '_'}, {50, '*'}}));
}

TEST(BfcOccupancyTest, R52SaysThatThereIsNoMemory) {
  EXPECT_EQ(RenderOccupancy(BfcSnapshot()), "<allocator contains no memory>");
}

// Small pools: a chunk covers several characters, the last one too.
TEST(BfcOccupancyTest, R52AChunkReachesTheLastCharacter) {
  BfcSnapshotBuilder builder;
  builder.Region().Free(256).InUse(256, 256).Free(256).InUse(1, 256);
  EXPECT_EQ(RenderOccupancy(builder.snapshot()),
            Runs({{25, '_'}, {25, '*'}, {25, '_'}, {1, '*'}, {24, 'x'}}));
}

// tf_bfc W20: 0/0 in the original.
TEST(BfcOccupancyTest, W20FragmentationOfAFullPoolIsZero) {
  BfcSnapshotBuilder builder;
  builder.Region().InUse(512, 512);
  EXPECT_EQ(Fragmentation(builder.snapshot().numbers), 0.0);
  EXPECT_EQ(Fragmentation(BfcSnapshot::Numbers()), 0.0);
}

TEST(BfcOccupancyTest, R51IsZeroForOneFreeBlockAndGrowsWithTheNumberOfThem) {
  BfcSnapshotBuilder one;
  one.Region().InUse(512, 512).Free(1024);
  EXPECT_EQ(Fragmentation(one.snapshot().numbers), 0.0);
  BfcSnapshotBuilder many;
  many.Region();
  for (int i = 0; i < 4; ++i) many.Free(256).InUse(1, 256);
  EXPECT_EQ(Fragmentation(many.snapshot().numbers), 0.75);
}

}  // namespace
}  // namespace strata
