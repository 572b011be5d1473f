#ifndef STRATA_TOOLS_LINE_READER_H_
#define STRATA_TOOLS_LINE_READER_H_

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "strata/tools/input_buffer.h"

namespace strata {

// What editors of some systems begin a text with.
inline constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

// The lines of a text, without a byte order mark.
//
// Errors: TraceError: the text cannot be read, is cut off or corrupt, or has a
//   line above kMaxLineBytes.
// Threads: externally synchronised.
// Cost: a line is a view into the buffer.
class LineReader {
 public:
  static constexpr std::size_t kMaxLineBytes = std::size_t{1} << 20;

  // `input` outlives the reader.
  explicit LineReader(InputBuffer& input) : input_(input) {}

  // The next line without its end (LF or CRLF), valid until the next call.
  // False at the end of the file.
  bool Next(std::string_view* line);
  // The number of the line that Next returned last, from 1.
  std::uint64_t line() const { return line_; }

 private:
  // Reads more behind what is left; false at the end of the file.
  bool Fill();

  InputBuffer& input_;
  std::size_t returned_ = 0;  // bytes of the line that Next returned last
  std::uint64_t line_ = 0;
};

}  // namespace strata

#endif  // STRATA_TOOLS_LINE_READER_H_
