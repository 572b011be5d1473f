#include "strata/tools/readers/trace_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <fstream>
#include <ios>
#include <sstream>
#include <string>

#include "strata/tests/tools/readers/pickle/pickle_text.h"
#include "strata/tests/tools/temp_file.h"

namespace strata::tools {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

const char kUmpire[] =
    R"({"category":"operation","name":"allocate","numeric_args":{"size":5},)"
    R"("string_args":{"allocator_ref":"0x1","pointer":"0x10"}})"
    "\n";

std::string Snapshot() {
  nlohmann::json entries;
  entries.push_back(
      {{"action", "alloc"}, {"addr", 16}, {"size", 5}, {"stream", 0}});
  nlohmann::json snapshot;
  snapshot["segments"] = nlohmann::json::array();
  snapshot["device_traces"].push_back(entries);
  return PickleOf(snapshot);
}

Trace ReadContent(const std::string& content,
                  const TraceReaderOptions& options = {}) {
  InputBuffer input("test", content);
  return ReadTrace(input, options);
}

TEST(TraceReaderTest, SeesTheFormFromTheContent) {
  for (const std::string& content :
       {std::string(kHeader) + "1,0,allocate,0x10,5,0\n", std::string(kUmpire),
        std::string("# a comment\n").append(kUmpire),
        std::string("\xef\xbb\xbf").append(kUmpire),
        std::string("\xef\xbb\xbf# a comment\n").append(kUmpire),
        std::string("\r\n \n").append(kUmpire),
        std::string("\n").append(kHeader) + "1,0,allocate,0x10,5,0\n",
        Snapshot()}) {
    EXPECT_THAT(ReadContent(content).allocated_bytes, ::testing::ElementsAre(5))
        << content;
  }
}

TEST(TraceReaderTest, SeesItThroughGzip) {
  for (const std::string& content : {std::string(kUmpire), Snapshot()}) {
    const TempFile file(".gz");
    file.WriteGzip(content);
    EXPECT_EQ(ReadTrace(file.path(), {}).events.size(), 1U);
  }
}

TEST(TraceReaderTest, CutOffGzipIsReadToItsLastWholeRow) {
  const std::string path = BundledTrace("gen_fsdp");
  const Trace whole = ReadTrace(path, {});
  std::ifstream bundled(path, std::ios::binary);
  std::stringstream bytes;
  bytes << bundled.rdbuf();
  const TempFile file(".csv.gz");
  file.Write(bytes.str().substr(0, bytes.str().size() / 2));
  const Trace trace = ReadTrace(file.path(), {});
  ASSERT_GT(trace.events.size(), 100U);
  ASSERT_LT(trace.events.size(), whole.events.size());
  EXPECT_TRUE(std::equal(trace.events.begin(), trace.events.end(),
                         whole.events.begin()));
  EXPECT_EQ(trace.skipped.Summary(), "cut_row 1");
  EXPECT_FALSE(trace.skipped.IsSuspect());
  TraceReaderOptions options;
  options.strict = true;
  EXPECT_THAT([&] { ReadTrace(file.path(), options); },
              ThrowsMessage<TraceError>(HasSubstr("gzip data is cut off")));
}

// Half a pickle has no value.
TEST(TraceReaderTest, CutOffSnapshotIsAnError) {
  const TempFile whole(".gz");
  whole.WriteGzip(Snapshot());
  const std::string bytes = whole.Read();
  const TempFile file(".gz");
  for (std::size_t size = 2; size < bytes.size(); ++size) {
    file.Write(bytes.substr(0, size));
    EXPECT_THAT([&] { ReadTrace(file.path(), {}); },
                ThrowsMessage<TraceError>(HasSubstr("gzip data is cut off")))
        << size;
  }
}

TEST(TraceReaderTest, ChoiceOfADeviceIsForSnapshots) {
  TraceReaderOptions options;
  options.device = 0;
  EXPECT_EQ(ReadContent(Snapshot(), options).events.size(), 1U);
  EXPECT_THAT([&] { ReadContent(kUmpire, options); },
              ThrowsMessage<TraceError>(HasSubstr("no snapshot")));
}

TEST(TraceReaderTest, EmptyFileIsAnError) {
  EXPECT_THAT([] { ReadContent(""); },
              ThrowsMessage<TraceError>(HasSubstr("the file is empty")));
}

}  // namespace
}  // namespace strata::tools
