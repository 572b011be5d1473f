// `strata check` on the command line.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "strata/tests/tools/command_line_fixture.h"

namespace strata::tools {
namespace {

using ::testing::HasSubstr;

using CheckCommandTest = CommandLineTest;

constexpr char kCalls[] =
    "Time_ns,Thread,Device,Call,Pointer,Bytes,Value,Stream,Status,Node\n"
    "0,1,0,stream_create,0x30,0,0x1,3,0,0x0\n"
    "1,1,0,mem_alloc,0x1000,4096,0x0,0,0,0x0\n"
    "2,1,0,memset_async,0x1000,4096,0x0,3,0,0x0\n";

TEST_F(CheckCommandTest, FindsNothingInACleanTrace) {
  const TempFile calls;
  calls.Write(std::string(kCalls) +
              "3,1,0,stream_synchronize,0x0,0,0x0,3,0,0x0\n"
              "4,1,0,mem_free,0x1000,0,0x0,0,0,0x0\n");
  const CommandResult result = RunStrata({"check", calls.path()});
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr(": 5 calls, 0 hazards"));
}

TEST_F(CheckCommandTest, ShowsHazardsWithTheirLines) {
  const TempFile calls;
  calls.Write(std::string(kCalls) + "3,1,0,mem_free,0x1000,0,0x0,0,0,0x0\n");
  const CommandResult table = RunStrata({"check", calls.path()});
  EXPECT_EQ(table.code, 1);
  EXPECT_THAT(table.out, HasSubstr("free-in-use"));
  EXPECT_THAT(table.out, HasSubstr("never waited for stream 3's memset_async"));
  EXPECT_THAT(table.out, HasSubstr(": 4 calls, 1 hazards"));
  const CommandResult result =
      RunStrata({"check", "--format=json", calls.path()});
  EXPECT_EQ(result.code, 1);
  const auto json = nlohmann::json::parse(result.out);
  EXPECT_EQ(json[0]["hazards"], 1);
  const auto& report = json[0]["reports"][0];
  EXPECT_EQ(report["kind"], "free-in-use");
  EXPECT_EQ(report["first"]["line"], 4);
  EXPECT_EQ(report["second"]["line"], 5);
  EXPECT_EQ(report["second"]["call"], "mem_free");
  EXPECT_TRUE(report["second_life"].is_null());
}

TEST_F(CheckCommandTest, ReadsGzip) {
  const TempFile calls(".csv.gz");
  calls.WriteGzip(std::string(kCalls) +
                  "3,1,0,mem_free,0x1000,0,0x0,0,0,0x0\n");
  const CommandResult result = RunStrata({"check", calls.path()});
  EXPECT_EQ(result.code, 1) << result.err;
  EXPECT_THAT(result.out, HasSubstr(": 4 calls, 1 hazards"));
  calls.Write(calls.Read().substr(0, calls.Read().size() - 9));
  const CommandResult cut = RunStrata({"check", calls.path()});
  EXPECT_EQ(cut.code, 3);
  EXPECT_THAT(cut.err, HasSubstr("the last row, which is cut off"));
  ExpectRefused(RunStrata({"check", "--strict", calls.path()}),
                "gzip data is cut off");
}

TEST_F(CheckCommandTest, RefusesWhatIsNoTraceOfCalls) {
  const TempFile calls;
  calls.Write(std::string(kCalls) + "3,1,0,mem_fr");
  ExpectRefused(RunStrata({"check", "--strict", calls.path()}),
                ":5: 4 fields, not 10");
  ExpectRefused(RunStrata({"check", small_.path()}),
                "this is a recording of allocations, which `strata replay` "
                "reads");
  // The advice names the other command.
  calls.Write("{\"traceEvents\": []}\n");
  ExpectRefused(RunStrata({"check", calls.path()}),
                "the snapshot that `strata replay` reads");
  calls.Write("a,b\n");
  ExpectRefused(RunStrata({"check", calls.path()}), ":1: is no call trace");
  ExpectRefused(RunStrata({"check"}), "no recorded calls given");
  ExpectRefused(RunStrata({"check", "/no/such/file"}), "cannot be opened");
}

TEST_F(CheckCommandTest, LinesThatAreNoCallAreSkipped) {
  const std::string hazard = "3,1,0,mem_free,0x1000,0,0x0,0,0,0x0\n";
  const TempFile calls;
  for (const auto& [line, kind] :
       {std::pair{"WARN spill", "foreign_row"},
        std::pair{"3,1,0,teleport,0x0,0,0x0,0,0,0x0", "unknown_action"},
        std::pair{"3,1,0,mem_free,here,0,0x0,0,0,0x0", "bad_value"}}) {
    calls.Write(std::string(kCalls) + line + "\n" + hazard);
    const CommandResult result =
        RunStrata({"check", "--format=json", calls.path()});
    EXPECT_EQ(result.code, 3) << line;
    const auto trace = nlohmann::json::parse(result.out)[0];
    EXPECT_EQ(trace["skipped"], nlohmann::json({{kind, 1}}));
    EXPECT_EQ(trace["may_be_wrong"], true);
    EXPECT_EQ(trace["calls"], 4);
    // Line numbers are those of the file.
    EXPECT_EQ(trace["reports"][0]["first"]["line"], 4);
    EXPECT_EQ(trace["reports"][0]["second"]["line"], 6);
    EXPECT_THAT(RunStrata({"check", calls.path()}).out,
                HasSubstr("THE RESULT MAY BE WRONG"));
  }
  calls.Write(std::string(kCalls) + "3,1,0,mem_fr");
  const CommandResult cut = RunStrata({"check", calls.path()});
  EXPECT_EQ(cut.code, 3);
  EXPECT_THAT(cut.err, HasSubstr("the last row, which is cut off (line 5: "));
}

TEST_F(CheckCommandTest, FewSkippedLinesLeaveTheResult) {
  std::string text = kCalls;
  for (int i = 0; i < 100; ++i)
    text += "3,1,0,stream_query,0x0,0,0x0,0,0,0x0\n";
  const TempFile calls;
  calls.Write(text + "WARN\n");
  const CommandResult result = RunStrata({"check", calls.path()});
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr(": 103 calls, 0 hazards\n"));
}

TEST_F(CheckCommandTest, ABadFileDoesNotTakeTheResultsOfOthers) {
  const TempFile calls;
  calls.Write(kCalls);
  const CommandResult result =
      RunStrata({"check", "/no/such/file", calls.path()});
  EXPECT_EQ(result.code, 2);
  EXPECT_THAT(result.out, HasSubstr(": 3 calls, 0 hazards"));
}

}  // namespace
}  // namespace strata::tools
