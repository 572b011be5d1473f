#include "strata/tools/readers/gzip_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <thread>

#include "strata/tests/tools/temp_file.h"

namespace strata::tools {
namespace {

std::string Gzip(const std::string& text) {
  const TempFile file(".gz");
  file.WriteGzip(text);
  return file.Read();
}

// Content of the file at `path`, read `step` bytes at a time.
std::string Content(const std::string& path, std::size_t step = 100) {
  GzipFile file(path);
  EXPECT_TRUE(file.is_open());
  std::string text;
  std::string part(step, ' ');
  while (const std::size_t got = file.Read(part.data(), part.size())) {
    text.append(part, 0, got);
  }
  EXPECT_EQ(file.Read(part.data(), part.size()), 0U);
  return text;
}

std::string ContentOf(const std::string& bytes, std::size_t step = 100) {
  const TempFile file;
  file.Write(bytes);
  return Content(file.path(), step);
}

std::string LongText() {
  std::string text;
  for (std::size_t i = 0; text.size() < 1'000'000; ++i)
    text += std::to_string(i * i);
  return text;
}

TEST(GzipFileTest, ReadsWhatIsPlain) {
  for (const std::string text : {"", "a", "\x1f", "\x1f\x1f", "ab", "abc"}) {
    EXPECT_EQ(ContentOf(text), text);
    EXPECT_EQ(ContentOf(text, 1), text);
  }
  const std::string text = LongText();
  EXPECT_EQ(ContentOf(text), text);
  EXPECT_EQ(ContentOf(text, 300'000), text);
}

TEST(GzipFileTest, ReadsWhatIsCompressed) {
  for (const std::string text : {"", "a", "abc"}) {
    EXPECT_EQ(ContentOf(Gzip(text)), text);
    EXPECT_EQ(ContentOf(Gzip(text), 1), text);
  }
  const std::string text = LongText();
  EXPECT_EQ(ContentOf(Gzip(text)), text);
  EXPECT_EQ(ContentOf(Gzip(text), 300'000), text);
}

TEST(GzipFileTest, ReadsOneMemberAfterTheOther) {
  const std::string text = LongText();
  EXPECT_EQ(ContentOf(Gzip("a") + Gzip("") + Gzip(text) + Gzip("b")),
            "a" + text + "b");
}

TEST(GzipFileTest, SkipsZerosBehindAMember) {
  for (const std::size_t zeros : {1U, 512U, 300'000U}) {
    const std::string padding(zeros, '\0');
    EXPECT_EQ(ContentOf(Gzip("ab") + padding), "ab");
    EXPECT_EQ(ContentOf(Gzip("ab") + padding + Gzip("cd") + padding), "abcd");
  }
}

TEST(GzipFileTest, CountsWhatElseFollows) {
  for (const std::string& more :
       {std::string("x"), std::string("\x1f"), std::string("\x1f\x8a"),
        std::string("0,1,2\n"), std::string(300'000, 'x')}) {
    for (const std::size_t zeros : {0U, 600U}) {
      const TempFile path(".gz");
      path.Write(Gzip("ab") + std::string(zeros, '\0') + more);
      GzipFile file(path.path());
      std::string part(10, ' ');
      ASSERT_EQ(file.Read(part.data(), part.size()), 2U);
      EXPECT_EQ(part.substr(0, 2), "ab");
      EXPECT_EQ(file.Read(part.data(), part.size()), 0U);
      EXPECT_EQ(file.Read(part.data(), part.size()), 0U);
      EXPECT_EQ(file.trailing_bytes(), more.size());
    }
  }
}

TEST(GzipFileTest, KnowsHowMuchItHasRead) {
  const TempFile path(".gz");
  path.Write(Gzip(LongText()));
  const std::uint64_t bytes = path.Read().size();
  GzipFile file(path.path());
  EXPECT_EQ(file.file_bytes(), bytes);
  EXPECT_EQ(file.read_bytes(), 0U);
  std::string part(100, ' ');
  file.Read(part.data(), part.size());
  EXPECT_GT(file.read_bytes(), 0U);
  EXPECT_LT(file.read_bytes(), bytes);
  while (file.Read(part.data(), part.size()) != 0) {
  }
  EXPECT_EQ(file.read_bytes(), bytes);
  EXPECT_EQ(file.trailing_bytes(), 0U);
  EXPECT_EQ(GzipFile("/dev/null").file_bytes(), 0U);
}

// The first read may end anywhere, also between the two bytes that identify
// gzip.
TEST(GzipFileTest, ReadsAPipeHoweverItIsCut) {
  const std::string text = LongText();
  for (const std::string& bytes : {Gzip(text) + Gzip("b"), text + "b"}) {
    const TempFile path;
    ASSERT_EQ(mkfifo(path.path().c_str(), 0600), 0);
    const std::jthread writer([&] {
      const int pipe = open(path.path().c_str(), O_WRONLY);
      EXPECT_EQ(write(pipe, bytes.data(), 1), 1);
      // Waits until that byte has been read.
      int waiting = 1;
      while (waiting != 0 && ioctl(pipe, FIONREAD, &waiting) == 0) {
        std::this_thread::yield();
      }
      for (std::size_t at = 1; at < bytes.size();) {
        const ssize_t put = write(pipe, &bytes[at], bytes.size() - at);
        if (put <= 0) break;
        at += static_cast<std::size_t>(put);
      }
      close(pipe);
    });
    EXPECT_EQ(Content(path.path()), text + "b");
  }
}

TEST(GzipFileTest, FindsAMemberWhereverABufferEnds) {
  const std::string first = Gzip("a");
  constexpr std::size_t kBufferBytes = std::size_t{128} << 10;
  for (const std::size_t at :
       {kBufferBytes - 2, kBufferBytes - 1, kBufferBytes, kBufferBytes + 1}) {
    const std::string padding(at - first.size(), '\0');
    EXPECT_EQ(ContentOf(first + padding + Gzip("b")), "ab");
    EXPECT_EQ(ContentOf(first + padding), "a");
  }
}

TEST(GzipFileTest, IsNotOpenWithoutAFile) {
  EXPECT_FALSE(GzipFile(TempFile().path()).is_open());
}

}  // namespace
}  // namespace strata::tools
