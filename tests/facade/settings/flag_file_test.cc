#include "strata/facade/settings/flag_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace strata {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

class FlagFile {
 public:
  explicit FlagFile(const std::string& name)
      : path_(::testing::TempDir() + "strata_flags_" +
              std::to_string(getpid()) + "_" + name) {}
  FlagFile(const FlagFile&) = delete;
  FlagFile& operator=(const FlagFile&) = delete;
  ~FlagFile() { std::remove(path_.c_str()); }

  const std::string& path() const { return path_; }
  std::string flag() const { return "--flagfile=" + path_; }
  void Write(const std::string& text) const {
    std::ofstream file(path_, std::ios::binary);
    ASSERT_TRUE(file << text << std::flush) << path_;
  }

 private:
  const std::string path_;
};

TEST(FlagFileTest, StandsWhereItWasNamed) {
  const FlagFile file("file");
  file.Write("# a comment\n\n  --first=a b \r\n-second\n");
  EXPECT_THAT(ExpandFlagFiles({"x", file.flag(), "--first=c"}),
              ElementsAre("x", "--first=a b", "-second", "--first=c"));
  EXPECT_THAT(ExpandFlagFiles({"-flagfile", file.path()}),
              ElementsAre("--first=a b", "-second"));
}

TEST(FlagFileTest, MayNameOthers) {
  const FlagFile inner("inner");
  inner.Write("--inner");
  const FlagFile outer("outer");
  outer.Write("--before\n" + inner.flag() + "," + inner.path() + "\n--after\n");
  EXPECT_THAT(ExpandFlagFiles({outer.flag()}),
              ElementsAre("--before", "--inner", "--inner", "--after"));
}

TEST(FlagFileTest, OnlyFlagsBeforeTheEndAreLookedAt) {
  const std::vector<std::string> arguments = {"flagfile=x", "--flagfiles=x",
                                              "--", "--flagfile=x"};
  EXPECT_EQ(ExpandFlagFiles(arguments), arguments);
}

TEST(FlagFileTest, WhatIsWrongIsNamed) {
  const auto expand = [](const std::vector<std::string>& arguments) {
    return [arguments] { ExpandFlagFiles(arguments); };
  };
  EXPECT_THAT(expand({"--flagfile=/nonexistent"}),
              ThrowsMessage<std::invalid_argument>(
                  "--flagfile=/nonexistent: No such file or directory"));
  EXPECT_THAT(expand({"--flagfile=/"}), ThrowsMessage<std::invalid_argument>(
                                            "--flagfile=/: Is a directory"));
  EXPECT_THAT(expand({"--flagfile"}),
              ThrowsMessage<std::invalid_argument>(HasSubstr("lacks")));
  const FlagFile file("file");
  file.Write("--fine\nnot\n");
  EXPECT_THAT(expand({file.flag()}),
              ThrowsMessage<std::invalid_argument>(
                  AllOf(HasSubstr(file.path()), HasSubstr("line 2: 'not'"))));
  file.Write(file.flag());
  EXPECT_THAT(expand({file.flag()}),
              ThrowsMessage<std::invalid_argument>(HasSubstr("names itself")));
}

}  // namespace
}  // namespace strata
