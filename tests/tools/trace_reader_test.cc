#include "strata/tools/trace_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "strata/tests/tools/pickle_text.h"
#include "strata/tests/tools/temp_file.h"

namespace strata {
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
}  // namespace strata
