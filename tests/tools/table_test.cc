#include "strata/tools/table.h"

#include <gtest/gtest.h>

namespace strata {
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

}  // namespace
}  // namespace strata
