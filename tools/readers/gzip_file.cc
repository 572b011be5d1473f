#include "strata/tools/readers/gzip_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>
#include <new>

#include "strata/tools/terminal/interrupt.h"

namespace strata::tools {
namespace {

// Bytes per system call. Larger buffers were not faster when measured with
// zlib's gzread.
constexpr std::size_t kBufferBytes = std::size_t{128} << 10;
// For inflateInit2: the largest window, and gzip's header and trailer.
constexpr int kWindowBits = 15 + 16;

}  // namespace

GzipFile::GzipFile(const std::string& path)
    : buffer_(kBufferBytes), fd_(open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
  stream_.next_in = buffer_.data();
}

GzipFile::~GzipFile() {
  inflateEnd(&stream_);  // does nothing where no member has begun
  if (is_open()) close(fd_);
}

std::size_t GzipFile::ReadSystem(void* to, std::size_t bytes) {
  while (true) {
    const ssize_t got = read(fd_, to, bytes);
    if (got >= 0) {
      read_bytes_ += static_cast<std::uint64_t>(got);
      return static_cast<std::size_t>(got);
    }
    if (errno != EINTR) throw InputError(std::strerror(errno));
    CheckInterrupt();
  }
}

std::uint64_t GzipFile::file_bytes() const {
  struct stat facts = {};
  if (fstat(fd_, &facts) != 0 || !S_ISREG(facts.st_mode)) return 0;
  return static_cast<std::uint64_t>(facts.st_size);
}

void GzipFile::FillTwo() {
  while (stream_.avail_in < 2) {
    std::memmove(buffer_.data(), stream_.next_in, stream_.avail_in);
    stream_.next_in = buffer_.data();
    const std::size_t got = ReadSystem(buffer_.data() + stream_.avail_in,
                                       buffer_.size() - stream_.avail_in);
    if (got == 0) return;
    stream_.avail_in += static_cast<uInt>(got);
  }
}

bool GzipFile::IsMagic() const {
  return stream_.avail_in >= 2 && stream_.next_in[0] == 0x1f &&
         stream_.next_in[1] == 0x8b;
}

bool GzipFile::Begin() {
  FillTwo();
  if (!IsMagic()) {
    at_ = At::kPlain;
    return stream_.avail_in != 0;
  }
  if (inflateInit2(&stream_, kWindowBits) != Z_OK) throw std::bad_alloc();
  at_ = At::kMember;
  return true;
}

bool GzipFile::SkipPadding() {
  while (true) {
    FillTwo();
    if (stream_.avail_in == 0) return false;
    if (*stream_.next_in != 0) break;
    ++stream_.next_in;
    --stream_.avail_in;
  }
  if (!IsMagic()) {
    CountTrailing();
    return false;
  }
  inflateReset(&stream_);
  at_ = At::kMember;
  return true;
}

void GzipFile::CountTrailing() {
  at_ = At::kEnd;
  do {
    trailing_bytes_ += stream_.avail_in;
    stream_.next_in = buffer_.data();
    stream_.avail_in =
        static_cast<uInt>(ReadSystem(buffer_.data(), buffer_.size()));
  } while (stream_.avail_in != 0);
}

std::size_t GzipFile::Inflate(char* to, std::size_t bytes) {
  const auto room = static_cast<uInt>(
      std::min<std::size_t>(bytes, std::numeric_limits<uInt>::max()));
  stream_.next_out = reinterpret_cast<Bytef*>(to);
  stream_.avail_out = room;
  while (at_ == At::kMember && stream_.avail_out == room) {
    FillTwo();
    switch (inflate(&stream_, Z_NO_FLUSH)) {
      case Z_OK:
        break;
      case Z_STREAM_END:
        at_ = At::kBetween;
        break;
      case Z_BUF_ERROR:
        is_cut_ = true;
        at_ = At::kEnd;
        break;
      case Z_MEM_ERROR:
        throw std::bad_alloc();
      default:
        throw InputError("the gzip data is corrupt");
    }
  }
  return room - stream_.avail_out;
}

std::size_t GzipFile::Read(char* to, std::size_t bytes) {
  if (at_ == At::kStart && !Begin()) return 0;
  if (at_ == At::kPlain) {
    if (stream_.avail_in == 0) return ReadSystem(to, bytes);
    const auto held =
        static_cast<uInt>(std::min<std::size_t>(bytes, stream_.avail_in));
    std::copy_n(stream_.next_in, held, to);
    stream_.next_in += held;
    stream_.avail_in -= held;
    return held;
  }
  while (at_ != At::kEnd) {
    if (at_ == At::kBetween && !SkipPadding()) return 0;
    // A member may have 0 bytes.
    if (const std::size_t got = Inflate(to, bytes); got != 0) return got;
  }
  return 0;
}

}  // namespace strata::tools
