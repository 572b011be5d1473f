#include "strata/base/log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <latch>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace strata {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class LogTest : public ::testing::Test {
 protected:
  ~LogTest() override { SetLogCallback(nullptr); }

  void Redirect() {
    SetLogCallback([this](const LogEntry& entry) {
      const std::lock_guard<std::mutex> guard(mutex_);
      messages_.emplace_back(entry.message);
      last_ = entry;
    });
  }

  std::mutex mutex_;
  std::vector<std::string> messages_;
  LogEntry last_;  // only `file` is valid after the call
};

TEST_F(LogTest, CallbackReceivesSeverityFileLineAndMessage) {
  Redirect();
  testing::internal::CaptureStderr();
  STRATA_LOG(Warning) << "number " << 7;
  const int line = __LINE__ - 1;
  EXPECT_THAT(messages_, ElementsAre("number 7"));
  EXPECT_EQ(last_.severity, LogSeverity::kWarning);
  EXPECT_STREQ(last_.file, "log_test.cc");
  EXPECT_EQ(last_.line, line);
  STRATA_LOG(Error) << "an error";
  EXPECT_EQ(last_.severity, LogSeverity::kError);
  EXPECT_THAT(testing::internal::GetCapturedStderr(), IsEmpty());
}

TEST_F(LogTest, NullRestoresTheDefault) {
  Redirect();
  SetLogCallback(nullptr);
  testing::internal::CaptureStderr();
  STRATA_LOG(Error) << "to glog";
  const std::string text = testing::internal::GetCapturedStderr();
  EXPECT_THAT(text, HasSubstr("log_test.cc:"));
  EXPECT_THAT(text, HasSubstr("] to glog\n"));
  EXPECT_THAT(messages_, IsEmpty());
}

TEST_F(LogTest, AConditionGuardsTheWholeMessage) {
  Redirect();
  int made = 0;
  const auto count = [&made] { return ++made; };
  if (made == 0) STRATA_LOG_IF(Info, false) << count();
  STRATA_LOG_IF(Info, true) << count();
  EXPECT_THAT(messages_, ElementsAre("1"));
}

TEST_F(LogTest, VerboseMessagesNeedTheirLevel) {
  Redirect();
  STRATA_VLOG(0) << "always";
  STRATA_VLOG(9) << "never";
  EXPECT_THAT(messages_, ElementsAre("always"));
}

TEST_F(LogTest, LongMessagesAreWhole) {
  Redirect();
  std::string expected;
  {
    LogMessage message(LogSeverity::kInfo, "x.cc", 1);
    for (int i = 0; i < 2000; ++i) {
      message.stream() << i << ' ';
      expected += std::to_string(i) + ' ';
    }
  }
  EXPECT_THAT(messages_, ElementsAre(expected));
}

TEST_F(LogTest, AMessageOfTheCallbackGoesToTheDefault) {
  int calls = 0;
  SetLogCallback([&calls](const LogEntry&) {
    ++calls;
    STRATA_LOG(Error) << "from inside";
  });
  testing::internal::CaptureStderr();
  STRATA_LOG(Info) << "from outside";
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("from inside"));
  EXPECT_EQ(calls, 1);
}

TEST_F(LogTest, ACallbackMayReplaceItself) {
  SetLogCallback([this](const LogEntry&) { Redirect(); });
  STRATA_LOG(Info) << "first";
  STRATA_LOG(Info) << "second";
  EXPECT_THAT(messages_, ElementsAre("second"));
}

// A destructor of a callback may log. Then no lock of the log is held.
TEST_F(LogTest, ACallbackThatReplacesItselfIsDestroyedAfterwards) {
  {
    std::shared_ptr<void> own(nullptr,
                              [](void*) { STRATA_LOG(Info) << "own"; });
    SetLogCallback(
        [this, own = std::move(own)](const LogEntry&) { Redirect(); });
  }
  STRATA_LOG(Info) << "first";
  EXPECT_THAT(messages_, ElementsAre("own"));
}

TEST_F(LogTest, NoThreadExecutesTheCallbackAfterItIsReplaced) {
  std::latch inside(1);
  std::latch may_end(1);
  std::atomic<bool> has_ended{false};
  SetLogCallback([&](const LogEntry&) {
    inside.count_down();
    may_end.wait();
    has_ended = true;
  });
  std::thread logger([] { STRATA_LOG(Info) << "slow"; });
  inside.wait();
  std::atomic<bool> is_replaced{false};
  std::thread replacer([&] {
    SetLogCallback(nullptr);
    EXPECT_TRUE(has_ended);
    is_replaced = true;
  });
  EXPECT_FALSE(is_replaced);
  may_end.count_down();
  replacer.join();
  logger.join();
}

// A thread inside one callback is not inside the next one.
TEST_F(LogTest, ACallbackWaitsForThreadsInTheOneThatReplacedIt) {
  std::latch inside(1);
  std::latch may_end(1);
  std::atomic<bool> has_ended{false};
  std::atomic<int> first{0};
  SetLogCallback([&](const LogEntry&) {
    ++first;
    SetLogCallback([&](const LogEntry&) {
      inside.count_down();
      may_end.wait();
      has_ended = true;
    });
    std::thread logger([] { STRATA_LOG(Info) << "slow"; });
    inside.wait();
    std::thread releaser([&] {
      for (int i = 0; i < 1000; ++i) std::this_thread::yield();
      may_end.count_down();
    });
    SetLogCallback(nullptr);
    EXPECT_TRUE(has_ended);
    releaser.join();
    logger.join();
  });
  STRATA_LOG(Info) << "first";
  EXPECT_EQ(first, 1);
}

TEST_F(LogTest, ThreadsLogWhileTheCallbackChanges) {
  std::atomic<bool> is_over{false};
  std::atomic<int> late{0};
  SetLogCallback([](const LogEntry&) {});
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&] {
      while (!is_over) STRATA_LOG(Info) << "text";
    });
  }
  for (int i = 0; i < 200; ++i) {
    std::atomic<bool> is_mine{true};
    const auto token = std::make_shared<int>();
    SetLogCallback([&, token](const LogEntry&) { late += is_mine ? 0 : 1; });
    SetLogCallback([](const LogEntry&) {});
    is_mine = false;
    EXPECT_EQ(token.use_count(), 1);  // the callback is destroyed
  }
  is_over = true;
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(late, 0);
}

TEST_F(LogTest, AForkedChildMayReplaceACallbackThatAnotherThreadExecutes) {
  std::latch inside(1);
  std::latch may_end(1);
  SetLogCallback([&](const LogEntry&) {
    inside.count_down();
    may_end.wait();
  });
  std::thread logger([] { STRATA_LOG(Info) << "slow"; });
  inside.wait();
  const pid_t child = fork();
  if (child == 0) {
    alarm(60);
    SetLogCallback(nullptr);
    _exit(0);
  }
  int status = -1;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  may_end.count_down();
  logger.join();
}

using LogDeathTest = LogTest;

TEST_F(LogDeathTest, AFatalMessageEndsTheProcess) {
  EXPECT_DEATH(STRATA_FATAL << "the end", "log_test.cc:[0-9]+\\] the end");
}

TEST_F(LogDeathTest, AFatalMessageEndsTheProcessAfterTheCallback) {
  EXPECT_DEATH(
      {
        SetLogCallback([](const LogEntry& entry) {
          if (entry.severity != LogSeverity::kFatal) return;
          fprintf(stderr, "received: %s\n", entry.message);
        });
        STRATA_FATAL << "the end";
      },
      "received: the end");
}

}  // namespace
}  // namespace strata
