// strata info, in a program that registered a decorator.

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>

#include "strata/allocation/decorators/registered/decorator_factories.h"
#include "strata/tools/commands/commands.h"

namespace strata::tools {
namespace {

std::shared_ptr<Allocator> MakeSame(std::shared_ptr<Allocator> below,
                                    const DecoratorSettings& /*settings*/,
                                    const ChainContext& /*context*/) {
  return below;
}

// In a child process, with its output on stderr.
void PrintInfo(std::string format) {
  const DecoratorRegistrar quota(
      DecoratorFactory{"quota",
                       Below("stat"),
                       &MakeSame,
                       {{"most_live", "Uint64", "7", "Most allocations."}},
                       "some_file.cc",
                       1});
  std::string platform = "--strata_platform=sim";
  char* arguments[] = {platform.data(), format.data(), nullptr};
  dup2(STDERR_FILENO, STDOUT_FILENO);
  const int code = RunInfo(2, arguments);
  std::fflush(stdout);
  std::exit(code);
}

TEST(InfoCommandDeathTest, ShowsRegisteredDecorators) {
  EXPECT_EXIT(PrintInfo("--format=table"), ::testing::ExitedWithCode(0),
              "decorators: .*stat, quota, limit.*for --strata_decorators:\n"
              "  quota, below stat\n"
              "    most_live \\(Uint64, default: '7'\\)\n"
              "      Most allocations.");
  EXPECT_EXIT(PrintInfo("--format=json"), ::testing::ExitedWithCode(0),
              "\"registered_decorators\".*\"position\": *\"below stat\"");
  EXPECT_EXIT(PrintInfo("--format=flags"), ::testing::ExitedWithCode(0),
              "`--quota_most_live` . uint64 . `7` . Most allocations.");
}

}  // namespace
}  // namespace strata::tools
