#ifndef STRATA_TOOLS_LINE_READER_H_
#define STRATA_TOOLS_LINE_READER_H_

#include <zlib.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace strata {

// The lines of a text file, plain or compressed by gzip; which of the two is
// seen from its content.
//
// Errors: TraceError: the file cannot be read, is cut off or corrupt, or has a
//   line above kMaxLineBytes.
// Threads: externally synchronised.
// Cost: one buffer; a line is a view into it.
class LineReader {
 public:
  static constexpr std::size_t kMaxLineBytes = std::size_t{1} << 20;

  explicit LineReader(const std::string& path);
  ~LineReader();
  LineReader(const LineReader&) = delete;
  LineReader& operator=(const LineReader&) = delete;

  // The next line without its end (LF or CRLF), valid until the next call.
  // False at the end of the file.
  bool Next(std::string_view* line);
  // The number of the line that Next returned last, from 1.
  std::uint64_t line() const { return line_; }

 private:
  // Reads more behind what is left; false at the end of the file.
  bool Fill();
  [[noreturn]] void FailReading(const char* reason) const;

  const std::string path_;
  gzFile file_;
  std::vector<char> buffer_;
  std::size_t begin_ = 0;  // of what is not yet returned
  std::size_t end_ = 0;
  std::uint64_t line_ = 0;
};

}  // namespace strata

#endif  // STRATA_TOOLS_LINE_READER_H_
