// The threads that a capture must not surprise, and the threads that wait for
// each other.

#include "strata/allocation/streams/capture_gate.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <thread>

namespace strata {
namespace {

TEST(CaptureGateTest, ThereIsNoCalmWhileACaptureIsAnnounced) {
  CaptureGate gate;
  EXPECT_TRUE(CaptureGate::Calm(gate));
  gate.Announce();
  EXPECT_FALSE(CaptureGate::Calm(gate));
  gate.Withdraw();
  EXPECT_TRUE(CaptureGate::Calm(gate));
}

TEST(CaptureGateTest, AnAnnouncementAsksForAttention) {
  CaptureGate gate;
  EXPECT_EQ(gate.attention().load(), 0U);
  gate.Announce();
  gate.Announce();
  gate.Withdraw();
  EXPECT_NE(gate.attention().load(), 0U);
  gate.Withdraw();
  EXPECT_EQ(gate.attention().load(), 0U);
  ++gate.attention();  // by another user
  EXPECT_FALSE(gate.any());
}

TEST(CaptureGateTest, AnAnnouncementWaitsForTheCalmToEnd) {
  CaptureGate gate;
  std::atomic<bool> is_announced{false};
  auto calm = std::make_unique<CaptureGate::Calm>(gate);
  std::thread announcer([&] {
    gate.Announce();
    is_announced = true;
  });
  while (!gate.any()) std::this_thread::yield();
  EXPECT_TRUE(CaptureGate::Calm(gate)) << "who is calm stays so";
  std::thread other([&] {
    EXPECT_FALSE(CaptureGate::Calm(gate)) << "nobody new is calm meanwhile";
  });
  other.join();
  EXPECT_FALSE(is_announced);
  calm.reset();
  announcer.join();
  EXPECT_TRUE(is_announced);
  gate.Withdraw();
}

}  // namespace
}  // namespace strata
