#ifndef STRATA_BASE_RECORDING_FILE_H_
#define STRATA_BASE_RECORDING_FILE_H_

#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>

#include "strata/base/require_cxx20.h"

namespace strata {

// A file that records the activity of a program until the program ends.
//
// Model: a failed write, for example on a full disk, may be reported only when
//   the file is closed. That is too late for an exception: the destructor then
//   writes a message to stderr and increments incomplete(). If the process is
//   killed, its file ends with a whole entry, and the last few KiB are missing.
// Threads: not thread-safe; incomplete(): any thread.
// Cost: as stdio.
class RecordingFile {
 public:
  // Creates or truncates the file.
  //
  // Errors: std::invalid_argument that names `option`, the file, and the
  //   system's reason.
  RecordingFile(const char* option, const std::string& path);
  RecordingFile(const RecordingFile&) = delete;
  RecordingFile& operator=(const RecordingFile&) = delete;
  ~RecordingFile();

  std::FILE* get() const { return file_; }
  // Marks the end of one or several whole entries. An entry of more than 60 KiB
  // may be partly in the file.
  void EndEntry() noexcept;
  // Notes that an entry is lost because the host has no memory for it.
  void NoteLost() noexcept { ++lost_; }

  // Number of files of this process that were closed with entries missing.
  static std::uint64_t incomplete() noexcept;

 private:
  const std::string path_;
  const std::unique_ptr<char[]> buffer_;  // the stdio buffer of file_
  std::FILE* const file_;
  std::uint64_t lost_ = 0;
};

}  // namespace strata

#endif  // STRATA_BASE_RECORDING_FILE_H_
