#include "strata/platform/status.h"

#include <gtest/gtest.h>

#include <string>

namespace strata {
namespace {

TEST(StatusTest, NamesAndNumbersAreThoseOfCuda) {
  EXPECT_EQ(ToString(Status::kMemoryAllocation), "MemoryAllocation (2)");
  EXPECT_EQ(ToString(Status::kStreamCaptureWrongThread),
            "StreamCaptureWrongThread (908)");
  EXPECT_EQ(ToString(static_cast<Status>(12345)), "Unrecognized (12345)");
}

TEST(StatusTest, EveryNamedStatusIsReadBackFromNameAndNumber) {
  int named = 0;
  for (int number = -1; number < 1100; ++number) {
    const Status status = static_cast<Status>(number);
    const std::string name = StatusName(status);
    if (name == "Unrecognized") continue;
    ++named;
    for (const std::string& text : {name, "k" + name, std::to_string(number)}) {
      Status parsed = static_cast<Status>(-7);
      EXPECT_TRUE(ParseStatus(text, &parsed)) << text;
      EXPECT_EQ(parsed, status) << text;
    }
  }
  EXPECT_EQ(named, 25);
}

TEST(StatusTest, UnknownTextLeavesTheStatusAlone) {
  for (const char* text : {"", "k", "Nonsense", "2x", " 2", "+2", "3", "kk",
                           "99999999999", "memoryallocation", "Unrecognized"}) {
    Status status = Status::kNotReady;
    EXPECT_FALSE(ParseStatus(text, &status)) << text;
    EXPECT_EQ(status, Status::kNotReady) << text;
  }
}

}  // namespace
}  // namespace strata
