#ifndef STRATA_TOOLS_READERS_HANDLE_COLUMN_H_
#define STRATA_TOOLS_READERS_HANDLE_COLUMN_H_

#include <cstdint>
#include <optional>
#include <string_view>

namespace strata::tools {

// Parses the numbers of a column of pointers or streams.
//
// Model: a number is decimal, or hexadecimal with 0x; "(nil)" is 0. A number
//   with the letters a to f and without 0x is hexadecimal. Then every number of
//   the column is, if the column has no 0x and no number above 16 digits: some
//   systems print pointers so. Numbers of digits only that were read before
//   were parsed as decimal; ToHex corrects them.
class HandleColumn {
 public:
  // Nothing if `text` is no number of 64 bits.
  std::optional<std::uint64_t> Parse(std::string_view text);

  // Returns true once, after the number that showed that the column is
  // hexadecimal. The caller then corrects the numbers that it read before.
  bool TakeTurned();
  // Converts a number that was parsed as decimal: its digits are read as
  // hexadecimal. Numbers above 16 digits are returned unchanged.
  static std::uint64_t ToHex(std::uint64_t number);

 private:
  bool is_mixed_ = false;  // numbers of digits only are certainly decimal
  bool is_hex_ = false;
  bool has_turned_ = false;
};

}  // namespace strata::tools

#endif  // STRATA_TOOLS_READERS_HANDLE_COLUMN_H_
