#include "strata/base/thread_end.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <thread>

#include "strata/base/this_thread.h"

namespace strata {
namespace {

std::string g_calls;

template <char kName>
ThreadEnd& End() {
  static thread_local constinit ThreadEnd end(
      []() noexcept { g_calls += kName; });
  return end;
}

class ThreadEndTest : public ::testing::Test {
 protected:
  ThreadEndTest() { g_calls.clear(); }
};

TEST_F(ThreadEndTest, CallsTheLastAddedFirst) {
  std::thread([] {
    EXPECT_TRUE(End<'a'>().Add());
    EXPECT_TRUE(End<'b'>().Add());
    EXPECT_TRUE(End<'a'>().Add());
    EXPECT_TRUE(End<'a'>().is_pending());
    EXPECT_FALSE(End<'c'>().is_pending());
  }).join();
  EXPECT_EQ(g_calls, "ba");
}

TEST_F(ThreadEndTest, AThreadThatAddedNothingCallsNothing) {
  End<'a'>();
  std::thread([] { End<'b'>(); }).join();
  EXPECT_EQ(g_calls, "");
}

struct AddsAtEnd {
  ~AddsAtEnd() {
    if (is_used) End<'a'>().Add();
  }
  bool is_used = false;
};

TEST_F(ThreadEndTest, ADestructorOfTheThreadMayAdd) {
  std::thread([] {
    static thread_local AddsAtEnd adds;
    adds.is_used = true;
  }).join();
  EXPECT_EQ(g_calls, "a");
}

ThreadEnd& Adding() {
  static thread_local constinit ThreadEnd end([]() noexcept {
    g_calls += 'x';
    End<'a'>().Add();
  });
  return end;
}

TEST_F(ThreadEndTest, ACallMayAddAnother) {
  std::thread([] { Adding().Add(); }).join();
  EXPECT_EQ(g_calls, "xa");
}

// A function that was called at the end of the thread cannot be added again by
// a later one. Otherwise its thread-local object would be created a second
// time.
TEST_F(ThreadEndTest, ACallIsMadeOnce) {
  static thread_local constinit ThreadEnd again([]() noexcept {
    g_calls += End<'a'>().is_over() ? 'o' : '-';
    g_calls += End<'a'>().Add() ? 'y' : 'n';
  });
  std::thread([] {
    again.Add();
    End<'a'>().Add();
  }).join();
  EXPECT_EQ(g_calls, "aon");
}

}  // namespace
}  // namespace strata
