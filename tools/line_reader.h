#ifndef STRATA_TOOLS_LINE_READER_H_
#define STRATA_TOOLS_LINE_READER_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "strata/tools/input_buffer.h"

namespace strata {

// What editors of some systems begin a text with.
inline constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

// The lines of a text, without a byte order mark.
//
// Model: of a line above kMaxLineBytes only the first kLongLineBytes are given.
//   Where gzip data is cut off, the text ends with the last whole line.
// Errors: TraceError: the text cannot be read or is corrupt, or gzip data holds
//   no whole line.
// Threads: externally synchronised.
// Cost: a line is a view into the buffer.
class LineReader {
 public:
  static constexpr std::size_t kMaxLineBytes = std::size_t{1} << 20;
  static constexpr std::size_t kLongLineBytes = 64;

  // `input` outlives the reader.
  explicit LineReader(InputBuffer& input) : input_(input) {}

  // The next line without its end (LF or CRLF), valid until the next call.
  // False at the end of the file.
  bool Next(std::string_view* line);
  // The number of the line that Next returned last, from 1.
  std::uint64_t line() const { return line_; }
  // Whether that line is the last of the file, and has no end: a program that
  // was killed may have left a part of a line.
  bool is_unended() const { return is_unended_; }

 private:
  // Reads more behind what is left; false at the end of the file.
  bool Fill();
  // The next line, which is above kMaxLineBytes.
  std::string_view TakeLongLine();

  InputBuffer& input_;
  std::size_t returned_ = 0;  // bytes of the line that Next returned last
  std::string long_line_;     // the beginning of one
  std::uint64_t line_ = 0;
  bool is_unended_ = false;
};

}  // namespace strata

#endif  // STRATA_TOOLS_LINE_READER_H_
