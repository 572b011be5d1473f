#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include "strata/tools/bench/plot.h"

namespace strata::tools {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using Threads = BenchWorkload::Threads;

BenchRow RandomRow(const char* family, std::size_t live, const char* allocator,
                   double ns) {
  BenchRow row;
  std::ostringstream name;
  name << family << '_' << live;
  row.workload = name.str();
  row.live_blocks = live;
  row.allocator = allocator;
  if (ns > 0) row.pair_ns = {ns};
  return row;
}

BenchRow ThreadRow(std::size_t threads, const char* allocator, double ns) {
  BenchRow row = RandomRow("pair_own_streams", threads, allocator, ns);
  row.live_blocks = 0;
  row.threads = Threads::kOwnStreams;
  row.thread_count = threads;
  return row;
}

std::size_t Count(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos;
       at = text.find(part, at + 1)) {
    ++count;
  }
  return count;
}

// The points of the n-th polyline.
std::vector<std::pair<double, double>> PointsOf(const std::string& svg,
                                                std::size_t n) {
  std::size_t at = 0;
  for (std::size_t i = 0; i <= n; ++i) at = svg.find("points=\"", at) + 8;
  std::istringstream points(svg.substr(at, svg.find('"', at) - at));
  std::vector<std::pair<double, double>> result;
  double x = 0;
  double y = 0;
  char comma = 0;
  while (points >> x >> comma >> y) result.emplace_back(x, y);
  return result;
}

TEST(BenchPlotTest, HasAPanelForEachFamilyAndALineForEachAllocator) {
  const std::string svg = ToSvg({RandomRow("random", 100, "bfc", 50),
                                 RandomRow("random", 20'000, "bfc", 60),
                                 RandomRow("random", 100, "glibc", 500),
                                 RandomRow("random_small", 100, "bfc", 40),
                                 ThreadRow(2, "bfc", 30)});
  EXPECT_THAT(svg, AllOf(HasSubstr(">random: ns a pair<"),
                         HasSubstr(">random_small: ns a pair<"),
                         HasSubstr(">pair_own_streams: ns a pair<"),
                         HasSubstr(">live blocks<"), HasSubstr(">threads<")));
  EXPECT_EQ(Count(svg, "<polyline"), 4U);
  EXPECT_EQ(Count(svg, "<circle"), 5U);
  EXPECT_EQ(Count(svg, ">bfc<"), 1U);  // in the legend
  EXPECT_EQ(Count(svg, ">20k<"), 1U);
}

TEST(BenchPlotTest, MoreTimeIsHigherAndMoreBlocksAreFurtherRight) {
  const std::string svg = ToSvg({RandomRow("random", 10'000, "bfc", 1000),
                                 RandomRow("random", 100, "bfc", 10),
                                 RandomRow("random", 1000, "bfc", 100)});
  const auto points = PointsOf(svg, 0);
  ASSERT_EQ(points.size(), 3U);
  EXPECT_TRUE(std::is_sorted(points.begin(), points.end()));
  // A factor of ten is the same distance everywhere.
  EXPECT_NEAR(points[1].first - points[0].first,
              points[2].first - points[1].first, 0.2);
  EXPECT_GT(points[0].second, points[1].second);
  EXPECT_NEAR(points[0].second - points[1].second,
              points[1].second - points[2].second, 0.2);
}

TEST(BenchPlotTest, LeavesOutWhatHasNoNumberOrNoTime) {
  BenchRow pair;
  pair.workload = "pair";
  pair.allocator = "auto_growth";
  pair.pair_ns = {7};
  const std::string svg = ToSvg({pair, RandomRow("random", 100, "jemalloc", 0),
                                 RandomRow("random", 100, "bfc", 50)});
  EXPECT_THAT(svg, AllOf(Not(HasSubstr("auto_growth")),
                         Not(HasSubstr("jemalloc")), HasSubstr(">bfc<")));
  EXPECT_THAT(ToSvg({}), HasSubstr("</svg>"));
}

TEST(BenchPlotTest, KnowsWhichWorkloadsHaveANumber) {
  for (const char* name : {"random_100", "random_small_7", "pair_own_streams_2",
                           "training_one_stream_2"}) {
    EXPECT_TRUE(IsPlotted(FindBenchWorkload(name, {}))) << name;
  }
  for (const char* name : {"pair", "training", "hand_over"}) {
    EXPECT_FALSE(IsPlotted(FindBenchWorkload(name, {}))) << name;
  }
}

TEST(BenchPlotTest, MoreAllocatorsThanColorsAreDashed) {
  std::vector<BenchRow> rows;
  for (const char* name : {"a", "b", "c", "d", "e", "f", "g", "h"}) {
    rows.push_back(RandomRow("random", 100, name, 5));
  }
  EXPECT_EQ(Count(ToSvg(rows), "dasharray"), 0U);
  rows.push_back(RandomRow("random", 100, "i", 5));
  EXPECT_EQ(Count(ToSvg(rows), "dasharray"), 2U);  // the line and the legend
}

TEST(BenchPlotTest, EveryCoordinateIsInThePicture) {
  const std::string svg =
      ToSvg({RandomRow("random", 100, "bfc", 0.3),
             RandomRow("random", 1'000'000, "bfc", 99'999)});
  std::smatch size;
  ASSERT_TRUE(std::regex_search(
      svg, size, std::regex("width=\"([0-9.]+)\" height=\"([0-9.]+)\"")));
  for (const auto& [x, y] : PointsOf(svg, 0)) {
    EXPECT_GT(x, 0);
    EXPECT_LT(x, std::stod(size[1]));
    EXPECT_GT(y, 0);
    EXPECT_LT(y, std::stod(size[2]));
  }
}

}  // namespace
}  // namespace strata::tools
