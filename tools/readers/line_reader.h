#ifndef STRATA_TOOLS_READERS_LINE_READER_H_
#define STRATA_TOOLS_READERS_LINE_READER_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "strata/tools/readers/input_buffer.h"

namespace strata::tools {

// The mark with which some editors begin a text.
inline constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

// The lines of a text, without a byte order mark.
//
// Model: a line above kMaxLineBytes is shortened to its first kLongLineBytes.
//   Where gzip data is cut off, the text ends with the last complete line.
// Errors: TraceError: the text cannot be read or is corrupt, or gzip data
//   contains no complete line.
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
  // Whether that line is the last of the file, without a line end: a killed
  // program may have written a part of a line.
  bool is_unended() const { return is_unended_; }

 private:
  // Appends more data; false at the end of the file.
  bool Fill();
  // Returns the beginning of the next line, which is above kMaxLineBytes.
  std::string_view TakeLongLine();

  InputBuffer& input_;
  std::size_t returned_ = 0;  // bytes of the line that Next returned last
  std::string long_line_;     // beginning of a long line
  std::uint64_t line_ = 0;
  bool is_unended_ = false;
};

}  // namespace strata::tools

#endif  // STRATA_TOOLS_READERS_LINE_READER_H_
