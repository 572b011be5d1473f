#ifndef STRATA_TOOLS_TERMINAL_TABLE_H_
#define STRATA_TOOLS_TERMINAL_TABLE_H_

#include <optional>
#include <string>
#include <vector>

namespace strata::tools {

// Readable text in aligned columns.
class Table {
 public:
  enum class Align { kLeft, kRight };

  void AddColumn(const std::string& title, Align align);
  // One cell for each column, in UTF-8.
  void AddRow(std::vector<std::string> cells);
  // Title, then the rows, each with a line end and without trailing blanks.
  std::string ToString() const;

 private:
  struct Column {
    std::string title;
    Align align;
  };

  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

// A number for a cell, "-" for none.
std::string Fixed(const std::optional<double>& value, int digits);

}  // namespace strata::tools

#endif  // STRATA_TOOLS_TERMINAL_TABLE_H_
