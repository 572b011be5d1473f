#include "strata/base/recording_file.h"

#include <stdio_ext.h>

#include <atomic>
#include <cerrno>
#include <cinttypes>
#include <cstring>
#include <stdexcept>

namespace strata {
namespace {

constexpr std::size_t kBufferBytes = std::size_t{64} << 10;
// EndEntry flushes the buffer once this many bytes wait in it. Thus no flush
// splits an entry that is smaller than the rest of the buffer.
constexpr std::size_t kWaitingBytes = std::size_t{4} << 10;

std::atomic<std::uint64_t> incomplete_files{0};

}  // namespace

RecordingFile::RecordingFile(const char* option, const std::string& path)
    : path_(path),
      buffer_(std::make_unique<char[]>(kBufferBytes)),
      file_(std::fopen(path.c_str(), "w")) {
  if (file_ == nullptr) {
    throw std::invalid_argument(std::string(option) + ": cannot write '" +
                                path + "': " + std::strerror(errno));
  }
  std::setvbuf(file_, buffer_.get(), _IOFBF, kBufferBytes);
}

RecordingFile::~RecordingFile() {
  const bool had_failed = std::ferror(file_) != 0;
  errno = 0;
  const bool has_failed = std::fclose(file_) != 0 || had_failed;
  if (!has_failed && lost_ == 0) return;
  ++incomplete_files;
  if (has_failed) {
    std::fprintf(stderr, "strata: '%s' is not complete: %s\n", path_.c_str(),
                 errno != 0 ? std::strerror(errno) : "a write failed");
  }
  if (lost_ != 0) {
    std::fprintf(stderr,
                 "strata: '%s' is not complete: %" PRIu64
                 " entries lost for lack of host memory\n",
                 path_.c_str(), lost_);
  }
}

void RecordingFile::EndEntry() noexcept {
  if (__fpending(file_) >= kWaitingBytes) std::fflush(file_);
}

std::uint64_t RecordingFile::incomplete() noexcept { return incomplete_files; }

}  // namespace strata
