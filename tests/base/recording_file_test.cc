#include "strata/base/recording_file.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>

namespace strata {
namespace {

std::string ReadFile(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

// The message at the end of a recording to `path` that lost `lost` entries, and
// the number of incomplete recordings that it adds.
std::string Record(const std::string& path, int lost, std::uint64_t* more) {
  const std::uint64_t before = RecordingFile::incomplete();
  testing::internal::CaptureStderr();
  {
    RecordingFile file("some_option", path);
    std::fputs("a line\n", file.get());
    for (int i = 0; i < lost; ++i) file.NoteLost();
  }
  *more = RecordingFile::incomplete() - before;
  return testing::internal::GetCapturedStderr();
}

TEST(RecordingFileTest, AWholeOneSaysNothing) {
  std::uint64_t more = 0;
  EXPECT_EQ(Record("/dev/null", 0, &more), "");
  EXPECT_EQ(more, 0U);
}

TEST(RecordingFileTest, SaysWhyItIsNotComplete) {
  std::uint64_t more = 0;
  const std::string full = Record("/dev/full", 0, &more);
  EXPECT_NE(full.find("'/dev/full' is not complete: No space left"),
            std::string::npos)
      << full;
  EXPECT_EQ(more, 1U);
  const std::string lost = Record("/dev/null", 3, &more);
  EXPECT_NE(lost.find("'/dev/null' is not complete"), std::string::npos);
  EXPECT_NE(lost.find("3 entries lost"), std::string::npos) << lost;
  EXPECT_EQ(more, 1U);
}

// The file of a process that is killed at any time between entries.
TEST(RecordingFileTest, HasWholeEntriesWhileItIsWritten) {
  const std::string path = testing::TempDir() + "recording_file_whole";
  RecordingFile file("some_option", path);
  std::size_t written = 0;
  for (int i = 0; i < 1000; ++i) {
    std::fprintf(file.get(), "%d,", i);
    const std::string cut = ReadFile(path);
    EXPECT_TRUE(cut.empty() || cut.back() == '\n') << cut.size();
    std::fputs("and the rest of the entry\n", file.get());
    file.EndEntry();
    written = ReadFile(path).size();
  }
  EXPECT_GT(written, 20'000U);
}

TEST(RecordingFileTest, NamesTheOptionOfAFileThatCannotBeMade) {
  try {
    RecordingFile("some_option", "/nonexistent/file");
    FAIL() << "nothing thrown";
  } catch (const std::invalid_argument& error) {
    EXPECT_EQ(std::string(error.what()),
              "some_option: cannot write '/nonexistent/file': No such file or "
              "directory");
  }
}

}  // namespace
}  // namespace strata
