#include "strata/tools/line_reader.h"

#include <cerrno>
#include <cstring>

#include "strata/tools/trace.h"

namespace strata {
namespace {

constexpr std::size_t kFirstBufferBytes = std::size_t{256} << 10;
// zlib's default of 8 KiB costs a system call each; measured, larger than this
// gains nothing.
constexpr unsigned kZlibBufferBytes = 128U << 10;

}  // namespace

LineReader::LineReader(const std::string& path)
    : path_(path), file_(gzopen(path.c_str(), "rb")) {
  if (file_ == nullptr) {
    throw TraceError(path, 0,
                     std::string("cannot be opened: ") + std::strerror(errno));
  }
  gzbuffer(file_, kZlibBufferBytes);
  buffer_.resize(kFirstBufferBytes);
}

LineReader::~LineReader() { gzclose_r(file_); }

bool LineReader::Next(std::string_view* line) {
  std::size_t scanned = 0;
  const char* end = nullptr;
  while (true) {
    const char* from = buffer_.data() + begin_;
    end = static_cast<const char*>(
        std::memchr(from + scanned, '\n', end_ - begin_ - scanned));
    if (end != nullptr) break;
    scanned = end_ - begin_;
    if (!Fill()) break;
  }
  if (end == nullptr && begin_ == end_) return false;
  ++line_;
  const char* begin = buffer_.data() + begin_;
  if (end == nullptr) {
    end = buffer_.data() + end_;
    begin_ = end_;
  } else {
    begin_ = static_cast<std::size_t>(end - buffer_.data()) + 1;
  }
  auto bytes = static_cast<std::size_t>(end - begin);
  if (bytes > 0 && begin[bytes - 1] == '\r') --bytes;
  *line = std::string_view(begin, bytes);
  return true;
}

bool LineReader::Fill() {
  if (begin_ > 0) {
    std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
    end_ -= begin_;
    begin_ = 0;
  }
  if (end_ > kMaxLineBytes) FailReading("the line is too long for a trace");
  if (end_ == buffer_.size()) buffer_.resize(buffer_.size() * 2);
  const auto room = static_cast<unsigned>(buffer_.size() - end_);
  const int got = gzread(file_, buffer_.data() + end_, room);
  if (got > 0) {
    end_ += static_cast<std::size_t>(got);
    return true;
  }
  int code = Z_OK;
  const char* reason = gzerror(file_, &code);
  // The end of the file inside a gzip stream is no error to gzread.
  if (code == Z_BUF_ERROR) FailReading("the gzip data is cut off here");
  if (code == Z_ERRNO) FailReading(std::strerror(errno));
  if (code == Z_DATA_ERROR) FailReading("the gzip data is corrupt");
  if (got < 0) FailReading(reason);
  return false;
}

void LineReader::FailReading(const char* reason) const {
  throw TraceError(path_, line_ + 1, reason);
}

}  // namespace strata
