#include "strata/tools/trace/skip_log.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace strata::tools {
namespace {

TEST(SkipLogTest, CountsAndKeepsTheFirstCaseOfEachKind) {
  SkipLog log;
  EXPECT_TRUE(log.empty());
  EXPECT_EQ(log.Summary(), "");
  log.Add(SkipKind::kUnmatchedFree, 7, "first");
  log.Add(SkipKind::kUnmatchedFree, 9, "second");
  log.Add(SkipKind::kForeignRow, 8, "other");
  EXPECT_EQ(log.of(SkipKind::kUnmatchedFree).count, 2U);
  EXPECT_EQ(log.of(SkipKind::kUnmatchedFree).line, 7U);
  EXPECT_EQ(log.of(SkipKind::kUnmatchedFree).reason, "first");
  EXPECT_EQ(log.First()->reason, "first");
  EXPECT_EQ(log.Summary(), "foreign_row 1, unmatched_free 2");
  EXPECT_EQ(log.skipped_rows(), 3U);
}

TEST(SkipLogTest, AMissingColumnIsNotTheFirstPartLeftOut) {
  SkipLog log;
  log.Add(SkipKind::kMissingColumn, 1, "column", 2);
  EXPECT_FALSE(log.empty());
  EXPECT_EQ(log.First(), nullptr);
  log.Add(SkipKind::kBadValue, 5, "value");
  EXPECT_EQ(log.First()->reason, "value");
}

TEST(SkipLogTest, MoreThanOneInAHundredIsSuspect) {
  for (const std::uint64_t rows : {99U, 100U, 101U, 199U, 200U, 250U}) {
    SkipLog log;
    log.AddRows(rows);
    for (std::uint64_t skipped = 0; skipped < 5; ++skipped) {
      EXPECT_EQ(log.IsSuspect(), skipped * 100 > rows)
          << skipped << ' ' << rows;
      log.Add(SkipKind::kBadValue, 1, "");
    }
  }
}

TEST(SkipLogTest, BytesAreComparedWithBytesAndColumnsWithNothing) {
  SkipLog log;
  log.AddRows(10);
  log.AddBytes(1000);
  log.Add(SkipKind::kMissingColumn, 1, "", 3);
  log.Add(SkipKind::kForeignObject, 0, "", 50);
  log.Add(SkipKind::kTrailingBytes, 0, "", 10);
  EXPECT_FALSE(log.IsSuspect());
  EXPECT_EQ(log.skipped_rows(), 0U);
  log.Add(SkipKind::kTrailingBytes, 0, "", 1);
  EXPECT_TRUE(log.IsSuspect());
}

TEST(SkipLogTest, MergedLogsCountTogether) {
  SkipLog log;
  log.AddRows(1);
  log.Add(SkipKind::kCutRow, 5, "here");
  SkipLog more;
  more.AddRows(2);
  more.Add(SkipKind::kCutRow, 9, "there");
  more.Add(SkipKind::kNullFree, 3, "null", 2);
  log.Merge(more);
  EXPECT_EQ(log.rows(), 3U);
  EXPECT_EQ(log.of(SkipKind::kCutRow).count, 2U);
  EXPECT_EQ(log.of(SkipKind::kCutRow).reason, "here");
  EXPECT_EQ(log.of(SkipKind::kNullFree).count, 2U);
  EXPECT_EQ(log.First()->line, 3U);
}

TEST(SkipLogTest, KindsHaveNamesOfTheirOwn) {
  std::set<std::string> keys;
  for (const SkipKind kind : kSkipKinds) {
    keys.insert(SkipKindKey(kind));
    EXPECT_NE(std::string(SkipKindText(kind)), "");
  }
  EXPECT_EQ(keys.size(), kSkipKinds.size());
}

}  // namespace
}  // namespace strata::tools
