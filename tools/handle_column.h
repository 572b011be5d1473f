#ifndef STRATA_TOOLS_HANDLE_COLUMN_H_
#define STRATA_TOOLS_HANDLE_COLUMN_H_

#include <cstdint>
#include <optional>
#include <string_view>

namespace strata {

// The numbers of a column of pointers or streams.
//
// Model: a number is decimal, or hexadecimal with 0x; "(nil)" is 0. A number
//   with the letters a to f and without 0x is hexadecimal; so is then every
//   number of a column that has no 0x and no number above 16 digits, as some
//   systems print pointers. Digits alone that were read before count as decimal
//   until then: ToHex corrects them.
class HandleColumn {
 public:
  // Nothing if `text` is no number of 64 bits.
  std::optional<std::uint64_t> Parse(std::string_view text);

  // True once, after the number that showed that the column is hexadecimal. The
  // caller corrects the numbers that it read before.
  bool TakeTurned();
  // The number that the decimal digits of `number` are in hexadecimal. Numbers
  // above 16 digits stay.
  static std::uint64_t ToHex(std::uint64_t number);

 private:
  bool is_mixed_ = false;  // digits alone are decimal, for certain
  bool is_hex_ = false;
  bool has_turned_ = false;
};

}  // namespace strata

#endif  // STRATA_TOOLS_HANDLE_COLUMN_H_
