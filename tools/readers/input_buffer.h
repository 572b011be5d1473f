#ifndef STRATA_TOOLS_READERS_INPUT_BUFFER_H_
#define STRATA_TOOLS_READERS_INPUT_BUFFER_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "strata/tools/readers/gzip_file.h"

namespace strata::tools {

// The content of a file in order, plain or compressed by gzip.
//
// Threads: externally synchronised.
// Cost: a buffer as large as the unconsumed data.
class InputBuffer {
 public:
  // Errors: TraceError if the file cannot be opened.
  explicit InputBuffer(const std::string& path);
  // Reads `content`; error messages name it `path`.
  InputBuffer(const std::string& path, std::string_view content);
  InputBuffer(const InputBuffer&) = delete;
  InputBuffer& operator=(const InputBuffer&) = delete;

  const std::string& path() const { return path_; }
  // The unconsumed data; valid until the next Fill().
  const char* data() const { return buffer_.data() + begin_; }
  std::size_t size() const { return end_ - begin_; }
  void Consume(std::size_t bytes) { begin_ += bytes; }
  // Appends more data; false at the end.
  //
  // Errors: InputError; std::bad_alloc; as the function of OnFill.
  bool Fill();
  // Calls `act` before each read of the file. It may throw.
  void OnFill(std::function<void()> act) { on_fill_ = std::move(act); }

  // Whether the gzip data ends before its stream does; valid after the end.
  bool is_cut() const { return file_ && file_->is_cut(); }
  // Bytes after the gzip data that are not gzip data; valid after the end.
  std::uint64_t trailing_bytes() const {
    return file_ ? file_->trailing_bytes() : 0;
  }
  // Bytes read from the file, as stored, and its size; 0: unknown.
  std::uint64_t read_bytes() const { return file_ ? file_->read_bytes() : 0; }
  std::uint64_t file_bytes() const { return file_ ? file_->file_bytes() : 0; }

 private:
  const std::string path_;
  std::optional<GzipFile> file_;  // nothing: the buffer holds all data
  std::function<void()> on_fill_;
  std::vector<char> buffer_;
  std::size_t begin_ = 0;  // of the unconsumed data
  std::size_t end_ = 0;
};

}  // namespace strata::tools

#endif  // STRATA_TOOLS_READERS_INPUT_BUFFER_H_
