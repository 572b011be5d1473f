#ifndef STRATA_TOOLS_READERS_GZIP_FILE_H_
#define STRATA_TOOLS_READERS_GZIP_FILE_H_

#include <zlib.h>

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

namespace strata::tools {

// The reason of an error if GzipFile::is_cut().
inline constexpr char kGzipCutReason[] = "the gzip data is cut off here";

// The content of a file cannot be read: it is corrupt, or the system refuses.
// what() is only the reason; the reader adds the position.
class InputError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// A file that is read in order, plain or compressed by gzip, as its content
// shows. It may be a pipe.
//
// Model: gzip data consists of one or more members, and may be padded with
//   zeros, as on tapes. Other bytes after it, such as lines appended to a
//   compressed file, are counted and skipped. Gzip data that is cut off is read
//   up to the cut.
// Threads: externally synchronised.
class GzipFile {
 public:
  // is_open() and errno say whether it could be opened.
  explicit GzipFile(const std::string& path);
  ~GzipFile();
  GzipFile(const GzipFile&) = delete;
  GzipFile& operator=(const GzipFile&) = delete;

  bool is_open() const { return fd_ >= 0; }
  // Reads at most `bytes` > 0 bytes. Returns 0 at the end.
  //
  // Errors: InputError; std::bad_alloc; Interrupted, if a SIGINT ends a wait.
  std::size_t Read(char* to, std::size_t bytes);
  // Whether the gzip data ends before its stream does; valid after the end.
  bool is_cut() const { return is_cut_; }
  // Bytes after the gzip data that are not gzip data; valid after the end.
  std::uint64_t trailing_bytes() const { return trailing_bytes_; }
  // Bytes read from the system, and the size of the file; 0: unknown.
  std::uint64_t read_bytes() const { return read_bytes_; }
  std::uint64_t file_bytes() const;

 private:
  enum class At : std::uint8_t { kStart, kPlain, kMember, kBetween, kEnd };

  std::size_t ReadSystem(void* to, std::size_t bytes);
  // Reads until at least two unused bytes are buffered, if the file has them.
  void FillTwo();
  bool IsMagic() const;
  bool Begin();        // begins a member or plain text; false: the end
  bool SkipPadding();  // false: the end
  void CountTrailing();
  std::size_t Inflate(char* to, std::size_t bytes);

  std::vector<unsigned char> buffer_;  // raw bytes of the file
  const int fd_;  // opened last, after all code that may throw
  At at_ = At::kStart;
  bool is_cut_ = false;
  std::uint64_t trailing_bytes_ = 0;
  std::uint64_t read_bytes_ = 0;
  z_stream stream_{};  // next_in, avail_in: the unused bytes
};

}  // namespace strata::tools

#endif  // STRATA_TOOLS_READERS_GZIP_FILE_H_
