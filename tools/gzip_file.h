#ifndef STRATA_TOOLS_GZIP_FILE_H_
#define STRATA_TOOLS_GZIP_FILE_H_

#include <zlib.h>

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

namespace strata {

// The reason of an error, where GzipFile::is_cut().
inline constexpr char kGzipCutReason[] = "the gzip data is cut off here";

// The content of a file cannot be read: it is corrupt, or the system refuses.
// what() is the reason alone; the reader that knows the place adds it.
class InputError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// A file read in order, plain or compressed by gzip; which of the two is seen
// from its content. A pipe will do.
//
// Model: gzip data is one member or several, and may be padded by zeros, as on
//   tapes. Other bytes behind it are counted and passed over: they are lines
//   that were appended to a compressed file, for instance.
//   Gzip data that is cut off is read up to the cut.
// Threads: externally synchronised.
class GzipFile {
 public:
  // is_open() and errno tell whether it could be opened.
  explicit GzipFile(const std::string& path);
  ~GzipFile();
  GzipFile(const GzipFile&) = delete;
  GzipFile& operator=(const GzipFile&) = delete;

  bool is_open() const { return fd_ >= 0; }
  // Reads at most `bytes` > 0; 0: the end.
  //
  // Errors: InputError; std::bad_alloc; Interrupted, if a SIGINT ends a wait.
  std::size_t Read(char* to, std::size_t bytes);
  // Whether the gzip data ends before its stream does; known at the end.
  bool is_cut() const { return is_cut_; }
  // Bytes behind the gzip data that are no gzip data; known at the end.
  std::uint64_t trailing_bytes() const { return trailing_bytes_; }
  // Bytes read from the system, and those that the file has; 0: unknown.
  std::uint64_t read_bytes() const { return read_bytes_; }
  std::uint64_t file_bytes() const;

 private:
  enum class At : std::uint8_t { kStart, kPlain, kMember, kBetween, kEnd };

  std::size_t ReadSystem(void* to, std::size_t bytes);
  // What is read and not yet used becomes at least two bytes, if the file has
  // them.
  void FillTwo();
  bool IsMagic() const;
  bool Begin();        // of a member, or of plain text; false: the end
  bool SkipPadding();  // false: the end
  void CountTrailing();
  std::size_t Inflate(char* to, std::size_t bytes);

  std::vector<unsigned char> buffer_;  // of the file, as it is
  const int fd_;                       // opened last: what throws is before
  At at_ = At::kStart;
  bool is_cut_ = false;
  std::uint64_t trailing_bytes_ = 0;
  std::uint64_t read_bytes_ = 0;
  z_stream stream_{};  // next_in, avail_in: what is not used yet
};

}  // namespace strata

#endif  // STRATA_TOOLS_GZIP_FILE_H_
