#include "strata/tools/input_buffer.h"

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

InputBuffer::InputBuffer(const std::string& path)
    : path_(path), file_(gzopen(path.c_str(), "rb")) {
  if (file_ == nullptr) {
    throw TraceError(path, 0,
                     std::string("cannot be opened: ") + std::strerror(errno));
  }
  gzbuffer(file_, kZlibBufferBytes);
  buffer_.resize(kFirstBufferBytes);
}

InputBuffer::InputBuffer(const std::string& path, std::string_view content)
    : path_(path),
      buffer_(content.begin(), content.end()),
      end_(content.size()) {}

InputBuffer::~InputBuffer() {
  if (file_ != nullptr) gzclose_r(file_);
}

bool InputBuffer::Fill() {
  if (file_ == nullptr) return false;
  if (begin_ > 0) {
    std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
    end_ -= begin_;
    begin_ = 0;
  }
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
  if (code == Z_BUF_ERROR) throw InputError("the gzip data is cut off here");
  if (code == Z_ERRNO) throw InputError(std::strerror(errno));
  if (code == Z_DATA_ERROR) throw InputError("the gzip data is corrupt");
  if (got < 0) throw InputError(reason);
  return false;
}

}  // namespace strata
