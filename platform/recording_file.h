#ifndef STRATA_PLATFORM_RECORDING_FILE_H_
#define STRATA_PLATFORM_RECORDING_FILE_H_

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>

#include "strata/platform/require_cxx20.h"

namespace strata {

// A file in which what a program does is recorded until it ends.
//
// Model: what cannot be written, as when a disk is full, shows at the latest
//   when the file is closed. That is too late for an exception, so stderr says
//   it then, and the process counts it for whoever answers for the recording.
//   The file of a process that is killed ends with a whole entry; the last few
//   KiB are missing.
// Threads: none, but incomplete(): any.
// Cost: that of stdio.
class RecordingFile {
 public:
  // Creates or truncates the file.
  //
  // Errors: std::invalid_argument naming `option`, the file, and the system's
  //   reason.
  RecordingFile(const char* option, const std::string& path);
  RecordingFile(const RecordingFile&) = delete;
  RecordingFile& operator=(const RecordingFile&) = delete;
  ~RecordingFile();

  std::FILE* get() const { return file_; }
  // What was written so far is a whole entry, or several. One of more than
  // 60 KiB may be in the file in part.
  void EndEntry() noexcept;
  // Something is missing in it, as the host had no memory.
  void NoteLost() noexcept { ++lost_; }

  // Files of this process that were closed although something is missing.
  static std::uint64_t incomplete() noexcept;

 private:
  const std::string path_;
  const std::unique_ptr<char[]> buffer_;  // of file_
  std::FILE* const file_;
  std::uint64_t lost_ = 0;
};

}  // namespace strata

#endif  // STRATA_PLATFORM_RECORDING_FILE_H_
