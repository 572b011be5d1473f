#include "strata/tools/readers/line_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "strata/tests/tools/temp_file.h"
#include "strata/tools/trace/trace.h"

namespace strata::tools {
namespace {

using ::testing::ElementsAre;

std::vector<std::string> LinesOf(const std::string& path) {
  InputBuffer input(path);
  LineReader reader(input);
  std::vector<std::string> lines;
  std::string_view line;
  while (reader.Next(&line)) {
    lines.emplace_back(line);
    EXPECT_EQ(reader.line(), lines.size());
  }
  return lines;
}

TEST(LineReaderTest, EndsLinesAtLfAndCrlfAndTheEndOfTheFile) {
  const TempFile file;
  file.Write("one\ntwo\r\n\nfour");
  EXPECT_THAT(LinesOf(file.path()), ElementsAre("one", "two", "", "four"));
}

TEST(LineReaderTest, ReadsGzipAsPlain) {
  const TempFile file(".txt");  // seen from the content, not from the name
  file.WriteGzip("one\ntwo\n");
  EXPECT_THAT(LinesOf(file.path()), ElementsAre("one", "two"));
}

TEST(LineReaderTest, KeepsLinesThatCrossItsBuffer) {
  std::string text;
  std::vector<std::string> expected;
  for (std::size_t i = 0; i < 3000; ++i) {
    expected.push_back(std::string(i % 701, 'x') + std::to_string(i));
    text += expected.back() + "\n";
  }
  const TempFile file;
  file.WriteGzip(text);
  EXPECT_EQ(LinesOf(file.path()), expected);
}

TEST(LineReaderTest, TakesALineAboveItsFirstBuffer) {
  const TempFile file;
  const std::string line(700'000, 'x');
  file.Write("a\n" + line + "\nb\n");
  EXPECT_THAT(LinesOf(file.path()), ElementsAre("a", line, "b"));
}

TEST(LineReaderTest, GivesTheBeginningOfALineThatIsTooLong) {
  const TempFile file;
  const std::string beginning(LineReader::kLongLineBytes, 'x');
  file.Write("a\n" + std::string(3'000'000, 'x') + "\nb\n");
  EXPECT_THAT(LinesOf(file.path()), ElementsAre("a", beginning, "b"));
  file.Write("a\n" + std::string(3'000'000, 'x'));
  EXPECT_THAT(LinesOf(file.path()), ElementsAre("a", beginning));
}

TEST(LineReaderTest, KnowsALastLineWithoutItsEnd) {
  const auto unended = [](const std::string& text) {
    InputBuffer input("test", text);
    LineReader reader(input);
    std::vector<bool> result;
    std::string_view line;
    while (reader.Next(&line)) result.push_back(reader.is_unended());
    return result;
  };
  EXPECT_THAT(unended("a\nb"), ElementsAre(false, true));
  EXPECT_THAT(unended("a\nb\n"), ElementsAre(false, false));
  const std::string long_line(3'000'000, 'x');
  EXPECT_THAT(unended(long_line + "\n"), ElementsAre(false));
  EXPECT_THAT(unended(long_line), ElementsAre(true));
}

TEST(LineReaderTest, EmptyFileHasNoLines) {
  const TempFile file;
  file.Write("");
  EXPECT_TRUE(LinesOf(file.path()).empty());
}

// The error that LinesOf throws, or "".
std::string LineError(const std::string& path) {
  try {
    LinesOf(path);
  } catch (const TraceError& error) {
    return error.what();
  }
  return "";
}

TEST(LineReaderTest, MissingFileIsAnError) {
  EXPECT_EQ(LineError("/nowhere/at_all.csv"),
            "/nowhere/at_all.csv: cannot be opened: No such file or directory");
}

TEST(LineReaderTest, DirectoryIsAnError) {
  EXPECT_NE(LineError(::testing::TempDir()), "");
}

TEST(LineReaderTest, CutOffGzipEndsWithItsLastWholeLine) {
  const TempFile whole(".gz");
  const std::vector<std::string> lines = {"one", "two", "three", "four"};
  whole.WriteGzip("one\ntwo\nthree\nfour\n");
  const std::string bytes = whole.Read();
  // At least two bytes are needed to distinguish gzip from text.
  for (std::size_t size = 2; size < bytes.size(); ++size) {
    const TempFile file(".gz");
    file.Write(bytes.substr(0, size));
    const std::string error = LineError(file.path());
    if (!error.empty()) {
      // Not a single line.
      EXPECT_THAT(error, ::testing::HasSubstr(":1: the gzip data is cut off"));
      EXPECT_LT(size, bytes.size() / 2);
      continue;
    }
    const std::vector<std::string> read = LinesOf(file.path());
    ASSERT_LE(read.size(), lines.size());
    EXPECT_TRUE(std::equal(read.begin(), read.end(), lines.begin())) << size;
    // Only the end of the stream is missing.
    if (size + 8 >= bytes.size()) {
      EXPECT_EQ(read, lines);
    }
  }
}

TEST(LineReaderTest, CorruptGzipIsAnError) {
  const TempFile whole(".gz");
  whole.WriteGzip(std::string(1000, 'a') + "\n");
  std::string bytes = whole.Read();
  bytes[bytes.size() - 6] = static_cast<char>(bytes[bytes.size() - 6] + 1);
  const TempFile file(".gz");
  file.Write(bytes);
  EXPECT_THAT(LineError(file.path()), ::testing::HasSubstr("corrupt"));
}

}  // namespace
}  // namespace strata::tools
