#ifndef STRATA_TOOLS_INPUT_BUFFER_H_
#define STRATA_TOOLS_INPUT_BUFFER_H_

#include <zlib.h>

#include <cstddef>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace strata {

// What a file holds cannot be read: it is cut off, corrupt, or the system says
// no. what() is the reason alone; the reader that knows the place adds it.
class InputError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// The content of a file in order, plain or compressed by gzip; which of the two
// is seen from its content. A pipe will do.
//
// Threads: externally synchronised.
// Cost: a buffer as large as what its user leaves unconsumed.
class InputBuffer {
 public:
  // Errors: TraceError if the file cannot be opened.
  explicit InputBuffer(const std::string& path);
  // Reads `content`, which errors call `path`.
  InputBuffer(const std::string& path, std::string_view content);
  ~InputBuffer();
  InputBuffer(const InputBuffer&) = delete;
  InputBuffer& operator=(const InputBuffer&) = delete;

  const std::string& path() const { return path_; }
  // What was read and not yet consumed; valid until the next Fill().
  const char* data() const { return buffer_.data() + begin_; }
  std::size_t size() const { return end_ - begin_; }
  void Consume(std::size_t bytes) { begin_ += bytes; }
  // Reads more behind what is there; false at the end.
  //
  // Errors: InputError.
  bool Fill();

 private:
  const std::string path_;
  gzFile file_ = nullptr;  // null: all of it is in the buffer
  std::vector<char> buffer_;
  std::size_t begin_ = 0;  // of what is not yet consumed
  std::size_t end_ = 0;
};

}  // namespace strata

#endif  // STRATA_TOOLS_INPUT_BUFFER_H_
