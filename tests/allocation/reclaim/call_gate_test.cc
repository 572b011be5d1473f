#include "strata/allocation/reclaim/call_gate.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

namespace strata {
namespace {

TEST(CallGateTest, LetsCallsPassSideBySideAndAgain) {
  CallGate gate;
  const CallGate::Pass first(gate);
  const CallGate::Pass second(gate);
  EXPECT_TRUE(static_cast<bool>(first));
  EXPECT_TRUE(static_cast<bool>(second));
}

TEST(CallGateTest, NobodyEntersOnceItIsClosed) {
  CallGate gate;
  gate.Close();
  const CallGate::Pass pass(gate);
  EXPECT_FALSE(static_cast<bool>(pass));
  // A refused call does not count as inside.
  gate.Close();
}

TEST(CallGateTest, CloseWaitsForTheCallsInside) {
  for (int i = 0; i < 200; ++i) {
    CallGate gate;
    std::atomic<bool> inside{false};
    std::atomic<bool> leaving{false};
    std::thread caller([&] {
      const CallGate::Pass pass(gate);
      inside = true;
      for (int spin = 0; spin < 20; ++spin) std::this_thread::yield();
      leaving = true;
    });
    while (!inside) std::this_thread::yield();
    gate.Close();
    EXPECT_TRUE(leaving);
    caller.join();
  }
}

TEST(CallGateTest, ManyCallsAgainstOneClose) {
  for (int i = 0; i < 50; ++i) {
    CallGate gate;
    std::atomic<bool> closed{false};
    std::atomic<int> intruders{0};
    std::thread callers[2];
    for (std::thread& caller : callers) {
      caller = std::thread([&] {
        for (bool more = true; more;) {
          const CallGate::Pass pass(gate);
          if (pass && closed) ++intruders;
          more = static_cast<bool>(pass);
        }
      });
    }
    gate.Close();
    closed = true;
    for (std::thread& caller : callers) caller.join();
    EXPECT_EQ(intruders, 0);
  }
}

}  // namespace
}  // namespace strata
