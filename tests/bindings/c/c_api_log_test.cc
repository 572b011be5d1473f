// The messages of the library, through the C ABI.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "strata/base/log.h"
#include "strata/bindings/c/strata.h"

namespace strata {
namespace {

using ::testing::HasSubstr;

struct Received {
  int count = 0;
  std::int32_t severity = -1;
  std::string file;
  std::int32_t line = 0;
  std::string message;
};

void Receive(void* context, std::int32_t severity, const char* file,
             std::int32_t line, const char* message) {
  auto* const received = static_cast<Received*>(context);
  ++received->count;
  received->severity = severity;
  received->file = file;
  received->line = line;
  received->message = message;
}

TEST(CApiLogTest, TheCallbackReceivesTheMessageWithItsContext) {
  Received received;
  ASSERT_EQ(strata_set_log_callback(&Receive, &received), STRATA_OK);
  STRATA_LOG(Warning) << "one";
  const int line = __LINE__ - 1;
  EXPECT_EQ(received.severity, STRATA_LOG_WARNING);
  EXPECT_EQ(received.file, "c_api_log_test.cc");
  EXPECT_EQ(received.line, line);
  EXPECT_EQ(received.message, "one");
  STRATA_LOG(Error) << "two";
  EXPECT_EQ(received.severity, STRATA_LOG_ERROR);

  ASSERT_EQ(strata_set_log_callback(nullptr, nullptr), STRATA_OK);
  testing::internal::CaptureStderr();
  STRATA_LOG(Error) << "three";
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("] three"));
  EXPECT_EQ(received.count, 2);
}

}  // namespace
}  // namespace strata
