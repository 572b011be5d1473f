#include "strata/tools/readers/input_buffer.h"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "strata/tools/trace/trace.h"

namespace strata::tools {
namespace {

constexpr std::size_t kFirstBufferBytes = std::size_t{256} << 10;

}  // namespace

InputBuffer::InputBuffer(const std::string& path) : path_(path), file_(path) {
  if (!file_->is_open()) {
    throw TraceError(path, 0,
                     std::string("cannot be opened: ") + std::strerror(errno));
  }
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) {
    throw TraceError(path, 0, "is a folder");
  }
  buffer_.resize(kFirstBufferBytes);
}

InputBuffer::InputBuffer(const std::string& path, std::string_view content)
    : path_(path),
      buffer_(content.begin(), content.end()),
      end_(content.size()) {}

bool InputBuffer::Fill() {
  if (!file_) return false;
  if (on_fill_) on_fill_();
  if (begin_ > 0) {
    std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
    end_ -= begin_;
    begin_ = 0;
  }
  if (end_ == buffer_.size()) buffer_.resize(buffer_.size() * 2);
  const std::size_t got =
      file_->Read(buffer_.data() + end_, buffer_.size() - end_);
  end_ += got;
  return got != 0;
}

}  // namespace strata::tools
