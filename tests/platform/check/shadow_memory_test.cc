#include "strata/platform/check/shadow_memory.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

namespace strata::check {
namespace {

class ShadowMemoryTest : public testing::Test {
 protected:
  void Add(std::uint64_t begin, std::uint64_t end, std::uint64_t count,
           std::uint64_t space = 0) {
    MemoryUse use;
    use.epoch = {0, count};
    shadow_.VisitRange(space, begin, end,
                       [&](MemorySegment& segment, std::uint64_t,
                           std::uint64_t) { segment.Add(use); });
  }
  // "begin-end:latest count" of each segment.
  std::string Segments(std::uint64_t begin, std::uint64_t end,
                       std::uint64_t space = 0) {
    std::string text;
    shadow_.VisitKnown(
        space, begin, end,
        [&](const MemorySegment& segment, std::uint64_t from,
            std::uint64_t to) {
          text.append(text.empty() ? "" : " ");
          text.append(std::to_string(from)).append("-");
          text.append(std::to_string(to)).append(":");
          text.append(std::to_string(segment.uses.at(0).epoch.count));
        });
    return text;
  }

  ShadowMemory shadow_;
};

TEST_F(ShadowMemoryTest, CutsWhatIsVisitedOutOfWhatIsThere) {
  Add(0, 100, 1);
  Add(40, 60, 2);
  EXPECT_EQ(Segments(0, 1000), "0-40:1 40-60:2 60-100:1");
}

TEST_F(ShadowMemoryTest, FillsGaps) {
  Add(10, 20, 1);
  Add(30, 40, 1);
  Add(0, 50, 2);
  EXPECT_EQ(Segments(0, 1000), "0-50:2");
}

TEST_F(ShadowMemoryTest, CoalescesWhatIsAlike) {
  Add(0, 10, 1);
  Add(10, 20, 1);
  EXPECT_EQ(shadow_.segment_count(), 1U);
  EXPECT_EQ(Segments(0, 1000), "0-20:1");
}

TEST_F(ShadowMemoryTest, KnownSegmentsAreThoseThatOverlap) {
  Add(0, 10, 1);
  Add(10, 20, 2);
  Add(20, 30, 3);
  EXPECT_EQ(Segments(10, 20), "10-20:2");
  EXPECT_EQ(Segments(9, 21), "0-10:1 10-20:2 20-30:3");
  EXPECT_EQ(Segments(30, 40), "");
}

TEST_F(ShadowMemoryTest, SpacesAreApart) {
  Add(0, 10, 1, 0);
  Add(0, 10, 2, 1);
  Add(0, 10, 3, 2);
  EXPECT_EQ(Segments(0, 10, 1), "0-10:2");
  shadow_.EraseSpace(1);
  EXPECT_EQ(Segments(0, 10, 1), "");
  EXPECT_EQ(Segments(0, 10, 0), "0-10:1");
  EXPECT_EQ(Segments(0, 10, 2), "0-10:3");
}

TEST_F(ShadowMemoryTest, ErasesTheMiddle) {
  Add(0, 30, 1);
  shadow_.Erase(0, 10, 20);
  EXPECT_EQ(Segments(0, 1000), "0-10:1 20-30:1");
}

MemoryUse UseOf(std::uint32_t stream, std::uint64_t count,
                const std::shared_ptr<BlockLife>& life) {
  MemoryUse use;
  use.epoch = {stream, count};
  use.life = life;
  return use;
}

TEST(MemorySegmentTest, KeepsTheLatestUseOfAStream) {
  MemorySegment segment;
  segment.Add(UseOf(1, 1, nullptr));
  segment.Add(UseOf(2, 1, nullptr));
  segment.Add(UseOf(1, 5, nullptr));
  ASSERT_EQ(segment.uses.size(), 2U);
  EXPECT_EQ(segment.uses[0].epoch.count, 5U);
}

TEST(MemorySegmentTest, OfFormerLivesOnlyTheLastUseOfAStreamStays) {
  MemorySegment segment;
  for (std::uint64_t i = 1; i <= 10; ++i) {
    const auto life = std::make_shared<BlockLife>();
    segment.Begin(life);
    segment.Add(UseOf(1, i, life));
    segment.Add(UseOf(2, i, life));
    life->freed = AccessSite();
  }
  segment.Begin(std::make_shared<BlockLife>());
  EXPECT_EQ(segment.uses.size(), 2U);
  EXPECT_EQ(segment.uses[0].epoch.count, 10U);
}

// A graph may use its blocks again, so a later use elsewhere does not replace
// its uses.
TEST(MemorySegmentTest, UsesOfAGraphStayAsLongAsItCanBeLaunched) {
  auto token = std::make_shared<const int>(0);
  const auto graphs = std::make_shared<BlockLife>();
  graphs->capture = 1;
  graphs->graph = token;
  graphs->freed = AccessSite();
  const auto other = std::make_shared<BlockLife>();
  other->freed = AccessSite();
  MemorySegment segment;
  segment.Add(UseOf(1, 1, graphs));
  segment.Add(UseOf(1, 2, other));
  segment.Begin(nullptr);
  EXPECT_EQ(segment.uses.size(), 2U);
  token.reset();
  segment.Begin(nullptr);
  EXPECT_EQ(segment.uses.size(), 1U);
}

TEST(MemorySegmentTest, ConcludedUseAddsNothingToAKnownOne) {
  MemorySegment segment;
  segment.Add(UseOf(1, 5, nullptr));
  segment.AddConcluded(UseOf(1, 5, nullptr));
  EXPECT_EQ(segment.uses.size(), 1U);
  segment.AddConcluded(UseOf(1, 6, nullptr));
  EXPECT_EQ(segment.uses.size(), 2U);
}

// The addresses of a use matter as long as memory is mapped behind them.
TEST(MemorySegmentTest, OfFormerLivesTheLastUseThroughEachRegionStays) {
  MemorySegment segment;
  const auto life = std::make_shared<BlockLife>();
  segment.Begin(life);
  for (std::uint64_t region = 1; region <= 3; ++region) {
    MemoryUse use = UseOf(1, region, life);
    use.region = region;
    segment.Add(use);
  }
  life->freed = AccessSite();
  segment.Begin(nullptr);
  EXPECT_EQ(segment.uses.size(), 3U);
  segment.EndRegion(1);
  segment.EndRegion(2);
  ASSERT_EQ(segment.uses.size(), 2U);
  EXPECT_EQ(segment.uses[0].region, 3U);
  EXPECT_EQ(segment.uses[1].region, 0U);
  EXPECT_EQ(segment.uses[1].epoch.count, 2U);
}

// A block that is marked repeatedly.
TEST(MemorySegmentTest, LaterConcludedUseTakesThePlaceOfAnEarlierOne) {
  MemorySegment segment;
  for (std::uint64_t i = 1; i <= 10; ++i) {
    segment.AddConcluded(UseOf(1, i, nullptr));
    segment.AddConcluded(UseOf(2, i, nullptr));
  }
  ASSERT_EQ(segment.uses.size(), 2U);
  EXPECT_EQ(segment.uses[0].epoch.count, 10U);
}

TEST(MemorySegmentTest, UseThatIsKnownStaysBesideConcludedOnes) {
  MemorySegment segment;
  MemoryUse known = UseOf(1, 1, nullptr);
  known.access.number = 77;
  segment.Add(known);
  segment.AddConcluded(UseOf(1, 2, nullptr));
  segment.AddConcluded(UseOf(1, 3, nullptr));
  ASSERT_EQ(segment.uses.size(), 2U);
  EXPECT_EQ(segment.uses[0].access.number, 77U);
}

}  // namespace
}  // namespace strata::check
