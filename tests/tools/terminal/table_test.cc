#include "strata/tools/terminal/table.h"

#include <gtest/gtest.h>

#include <optional>

namespace strata::tools {
namespace {

TEST(TableTest, AlignsColumnsAndLeavesNoBlanksAtTheEnd) {
  Table table;
  table.AddColumn("name", Table::Align::kLeft);
  table.AddColumn("n", Table::Align::kRight);
  table.AddColumn("more", Table::Align::kLeft);
  table.AddRow({"a", "1", ""});
  table.AddRow({"longer", "1000", "x"});
  EXPECT_EQ(table.ToString(),
            "name       n  more\n"
            "a          1\n"
            "longer  1000  x\n");
}

TEST(TableTest, CountsCharactersAndNotBytes) {
  Table table;
  table.AddColumn("é", Table::Align::kRight);
  table.AddRow({"ab"});
  table.AddRow({"…"});
  EXPECT_EQ(table.ToString(), " é\nab\n …\n");
}

TEST(TableTest, NumbersOfCellsAreRoundedAndNoneIsADash) {
  EXPECT_EQ(Fixed(12.345, 1), "12.3");
  EXPECT_EQ(Fixed(-0.5, 2), "-0.50");
  EXPECT_EQ(Fixed(1e9, 0), "1000000000");
  EXPECT_EQ(Fixed(std::nullopt, 3), "-");
}

}  // namespace
}  // namespace strata::tools
