#ifndef STRATA_TESTS_TOOLS_READERS_SNAPSHOT_SNAPSHOT_FILES_H_
#define STRATA_TESTS_TOOLS_READERS_SNAPSHOT_SNAPSHOT_FILES_H_

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "strata/tests/tools/command.h"

namespace strata::tools {

// The output of make_snapshot.py, in a folder that is removed with the object.
class SnapshotFiles {
 public:
  explicit SnapshotFiles(int operations = 1500)
      : folder_(std::filesystem::path(::testing::TempDir()) / FolderName()) {
    std::ostringstream command;
    command << "python3 "
            << ShellQuoted(STRATA_SOURCE_DIR "/tests/tools/make_snapshot.py")
            << ' ' << ShellQuoted(folder_.string()) << " --operations "
            << operations;
    EXPECT_EQ(std::system(command.str().c_str()), 0) << command.str();
  }
  SnapshotFiles(const SnapshotFiles&) = delete;
  SnapshotFiles& operator=(const SnapshotFiles&) = delete;
  ~SnapshotFiles() {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }

  const std::filesystem::path& folder() const { return folder_; }
  std::string Path(const std::string& name) const { return folder_ / name; }
  std::string Read(const std::string& name) const {
    std::ifstream file(folder_ / name, std::ios::binary);
    EXPECT_TRUE(file) << name;
    std::ostringstream content;
    content << file.rdbuf();
    return content.str();
  }

 private:
  static std::string FolderName() {
    std::ostringstream name;
    name << "strata_snapshots_" << getpid() << '_' << next_++;
    return name.str();
  }

  static inline int next_ = 0;

  const std::filesystem::path folder_;
};

}  // namespace strata::tools

#endif  // STRATA_TESTS_TOOLS_READERS_SNAPSHOT_SNAPSHOT_FILES_H_
