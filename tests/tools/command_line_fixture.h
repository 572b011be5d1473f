#ifndef STRATA_TESTS_TOOLS_COMMAND_LINE_FIXTURE_H_
#define STRATA_TESTS_TOOLS_COMMAND_LINE_FIXTURE_H_

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "strata/tests/tools/command.h"
#include "strata/tests/tools/temp_file.h"

namespace strata::tools {

inline constexpr char kSmallTrace[] =
    "Thread,Time,Action,Pointer,Size,Stream\n"
    "1,0,allocate,0x10,3145728,0\n"
    "1,0,allocate,0x20,3145728,0x2\n"
    "1,0,free,0x10,3145728,0\n";

// Expects a refusal: exit code 2, one line on stderr that contains `message`,
// and nothing on stdout.
inline void ExpectRefused(const CommandResult& result,
                          const std::string& message) {
  EXPECT_EQ(result.code, 2);
  EXPECT_THAT(result.out, ::testing::IsEmpty());
  EXPECT_THAT(result.err, ::testing::HasSubstr(message));
  EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1)
      << result.err;
}

class CommandLineTest : public ::testing::Test {
 protected:
  CommandLineTest() { small_.Write(kSmallTrace); }

  // Replays a log with these rows.
  static CommandResult ReplayRows(const std::string& rows) {
    const TempFile file;
    file.Write(std::string(kHeader).append(rows));
    return RunStrata({"replay", file.path()});
  }

  const TempFile small_;
};

}  // namespace strata::tools

#endif  // STRATA_TESTS_TOOLS_COMMAND_LINE_FIXTURE_H_
