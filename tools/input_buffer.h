#ifndef STRATA_TOOLS_INPUT_BUFFER_H_
#define STRATA_TOOLS_INPUT_BUFFER_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "strata/tools/gzip_file.h"

namespace strata {

// The content of a file in order, plain or compressed by gzip.
//
// Threads: externally synchronised.
// Cost: a buffer as large as what its user leaves unconsumed.
class InputBuffer {
 public:
  // Errors: TraceError if the file cannot be opened.
  explicit InputBuffer(const std::string& path);
  // Reads `content`, which errors call `path`.
  InputBuffer(const std::string& path, std::string_view content);
  InputBuffer(const InputBuffer&) = delete;
  InputBuffer& operator=(const InputBuffer&) = delete;

  const std::string& path() const { return path_; }
  // What was read and not yet consumed; valid until the next Fill().
  const char* data() const { return buffer_.data() + begin_; }
  std::size_t size() const { return end_ - begin_; }
  void Consume(std::size_t bytes) { begin_ += bytes; }
  // Reads more behind what is there; false at the end.
  //
  // Errors: InputError; std::bad_alloc; as the function of OnFill.
  bool Fill();
  // `act` is called before each read of the file, and may throw.
  void OnFill(std::function<void()> act) { on_fill_ = std::move(act); }

  // Whether the gzip data ends before its stream does; known at the end.
  bool is_cut() const { return file_ && file_->is_cut(); }
  // Bytes behind the gzip data that are no gzip data; known at the end.
  std::uint64_t trailing_bytes() const {
    return file_ ? file_->trailing_bytes() : 0;
  }
  // Bytes read from the file, as it is on the disk, and those that it has; 0:
  // unknown.
  std::uint64_t read_bytes() const { return file_ ? file_->read_bytes() : 0; }
  std::uint64_t file_bytes() const { return file_ ? file_->file_bytes() : 0; }

 private:
  const std::string path_;
  std::optional<GzipFile> file_;  // nothing: all of it is in the buffer
  std::function<void()> on_fill_;
  std::vector<char> buffer_;
  std::size_t begin_ = 0;  // of what is not yet consumed
  std::size_t end_ = 0;
};

}  // namespace strata

#endif  // STRATA_TOOLS_INPUT_BUFFER_H_
