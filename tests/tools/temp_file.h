#ifndef STRATA_TESTS_TOOLS_TEMP_FILE_H_
#define STRATA_TESTS_TOOLS_TEMP_FILE_H_

#include <gtest/gtest.h>
#include <unistd.h>
#include <zlib.h>

#include <cstdio>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>

namespace strata::tools {

// A file of a test, removed with the object.
class TempFile {
 public:
  explicit TempFile(const std::string& suffix = ".csv")
      : path_(::testing::TempDir() + "strata_" + std::to_string(getpid()) +
              "_" + std::to_string(next_++) + suffix) {}
  TempFile(const TempFile&) = delete;
  TempFile& operator=(const TempFile&) = delete;
  ~TempFile() { std::remove(path_.c_str()); }

  const std::string& path() const { return path_; }

  void Write(std::string_view text) const {
    std::ofstream file(path_, std::ios::binary);
    file.write(text.data(), static_cast<std::streamsize>(text.size()));
    ASSERT_TRUE(file.flush()) << path_;
  }

  void WriteGzip(std::string_view text) const {
    gzFile file = gzopen(path_.c_str(), "wb1");
    ASSERT_NE(file, nullptr) << path_;
    EXPECT_EQ(gzwrite(file, text.data(), static_cast<unsigned>(text.size())),
              static_cast<int>(text.size()));
    ASSERT_EQ(gzclose(file), Z_OK);
  }

  std::string Read() const {
    std::ifstream file(path_, std::ios::binary);
    std::stringstream text;
    text << file.rdbuf();
    return text.str();
  }

 private:
  static inline int next_ = 0;

  const std::string path_;
};

inline constexpr char kHeader[] = "Thread,Time,Action,Pointer,Size,Stream\n";

inline std::string BundledTrace(const std::string& name) {
  std::string path = STRATA_SOURCE_DIR "/tests/data/traces/";
  return path.append(name).append(".csv.gz");
}

}  // namespace strata::tools

#endif  // STRATA_TESTS_TOOLS_TEMP_FILE_H_
