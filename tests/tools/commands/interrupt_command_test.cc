// The output of `strata replay` after Ctrl-C.

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "strata/tests/tools/command_line_fixture.h"

namespace strata::tools {
namespace {

using ::testing::HasSubstr;

class InterruptCommandTest : public CommandLineTest {
 protected:
  InterruptCommandTest() { EXPECT_EQ(mkfifo(pipe_.path().c_str(), 0600), 0); }

  // Replays a trace, and then a second one from a pipe that does not end until
  // the program is interrupted.
  CommandResult InterruptInSecond(std::vector<std::string> arguments) {
    arguments.insert(arguments.end(), {small_.path(), pipe_.path()});
    const pid_t child = fork();
    if (child == 0) Run(arguments);
    // Returns after the program has opened the other end.
    const int writer = open(pipe_.path().c_str(), O_WRONLY | O_CLOEXEC);
    EXPECT_GE(writer, 0);
    EXPECT_EQ(kill(child, SIGINT), 0);
    close(writer);
    int status = 0;
    EXPECT_EQ(waitpid(child, &status, 0), child);
    CommandResult result;
    if (WIFEXITED(status)) result.code = WEXITSTATUS(status);
    result.out = out_.Read();
    result.err = err_.Read();
    return result;
  }

 private:
  [[noreturn]] void Run(const std::vector<std::string>& arguments) const {
    std::vector<std::string> words = {STRATA_BINARY, "replay"};
    words.insert(words.end(), arguments.begin(), arguments.end());
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    const int flags = O_WRONLY | O_CREAT | O_TRUNC;
    dup2(open(out_.path().c_str(), flags, 0600), STDOUT_FILENO);
    dup2(open(err_.path().c_str(), flags, 0600), STDERR_FILENO);
    std::signal(SIGINT, SIG_DFL);
    execv(STRATA_BINARY, argv.data());
    _exit(127);
  }

  const TempFile pipe_;
  const TempFile out_;
  const TempFile err_;
};

TEST_F(InterruptCommandTest, TablePrintsTheRowsThatAreDone) {
  const CommandResult result = InterruptInSecond({});
  EXPECT_EQ(result.code, 130);
  EXPECT_THAT(result.out,
              HasSubstr("\nauto (virtual_memory) reserves 20.0 MiB"));
  EXPECT_THAT(result.err, HasSubstr("strata: interrupted\n"));
}

TEST_F(InterruptCommandTest, JsonPrintsTheRowsThatAreDone) {
  const CommandResult result = InterruptInSecond({"--format=json"});
  EXPECT_EQ(result.code, 130);
  const auto json = nlohmann::json::parse(result.out);
  ASSERT_EQ(json.size(), 1U);
  EXPECT_EQ(json[0]["trace"], small_.path());
}

}  // namespace
}  // namespace strata::tools
