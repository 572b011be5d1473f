#include "strata/platform/biased_lock/process_barrier.h"

#include <gtest/gtest.h>
#include <linux/membarrier.h>

#include <vector>

namespace strata {
namespace {

// A system with answers that the test sets.
struct FakeSystem {
  int offered = MEMBARRIER_CMD_GLOBAL | MEMBARRIER_CMD_PRIVATE_EXPEDITED |
                MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED;
  bool may_register = true;
  bool is_registered = false;
  bool has_global = true;
  std::vector<int> calls;
};
FakeSystem* g_system = nullptr;

int Answer(int command) {
  g_system->calls.push_back(command);
  switch (command) {
    case MEMBARRIER_CMD_QUERY:
      return g_system->offered;
    case MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED:
      g_system->is_registered = g_system->may_register;
      return g_system->may_register ? 0 : -1;
    case MEMBARRIER_CMD_PRIVATE_EXPEDITED:
      return g_system->is_registered ? 0 : -1;
    default:
      return g_system->has_global ? 0 : -1;
  }
}

class ProcessBarrierTest : public testing::Test {
 protected:
  ProcessBarrierTest() { g_system = &system_; }

  FakeSystem system_;
};

using ProcessBarrierDeathTest = ProcessBarrierTest;

TEST_F(ProcessBarrierTest, RegistersOnceAndRunsWithOneCall) {
  ProcessBarrier barrier(&Answer);
  EXPECT_TRUE(barrier.is_available());
  system_.calls.clear();
  barrier.Run();
  barrier.Run();
  EXPECT_EQ(system_.calls,
            std::vector<int>(2, MEMBARRIER_CMD_PRIVATE_EXPEDITED));
}

TEST_F(ProcessBarrierTest, IsNotThereOnAnOldKernel) {
  system_.offered = -1;
  const ProcessBarrier barrier(&Answer);
  EXPECT_FALSE(barrier.is_available());
  EXPECT_EQ(system_.calls, std::vector<int>{MEMBARRIER_CMD_QUERY});
}

TEST_F(ProcessBarrierTest, IsNotThereWithoutItsCommand) {
  system_.offered = MEMBARRIER_CMD_GLOBAL;
  EXPECT_FALSE(ProcessBarrier(&Answer).is_available());
  EXPECT_FALSE(system_.is_registered);
}

TEST_F(ProcessBarrierTest, IsNotThereWhereASandboxRefusesToRegister) {
  system_.may_register = false;
  EXPECT_FALSE(ProcessBarrier(&Answer).is_available());
}

// As may be necessary in a forked process.
TEST_F(ProcessBarrierTest, RegistersAgain) {
  ProcessBarrier barrier(&Answer);
  system_.is_registered = false;
  barrier.Run();
  EXPECT_TRUE(system_.is_registered);
  EXPECT_EQ(system_.calls.back(), MEMBARRIER_CMD_PRIVATE_EXPEDITED);
}

TEST_F(ProcessBarrierTest, FallsBackOnTheSlowBarrier) {
  ProcessBarrier barrier(&Answer);
  system_.is_registered = false;
  system_.may_register = false;
  barrier.Run();
  EXPECT_EQ(system_.calls.back(), MEMBARRIER_CMD_GLOBAL);
}

TEST_F(ProcessBarrierDeathTest, DiesWithoutAnyBarrier) {
  ProcessBarrier barrier(&Answer);
  system_.is_registered = false;
  system_.may_register = false;
  system_.has_global = false;
  EXPECT_DEATH(barrier.Run(), "takes membarrier away");
}

TEST_F(ProcessBarrierTest, TheOneOfTheProcessStaysAvailable) {
  ProcessBarrier& barrier = ProcessBarrier::Instance();
  EXPECT_EQ(&ProcessBarrier::Instance(), &barrier);
  if (!barrier.is_available()) GTEST_SKIP() << "the system has no membarrier";
  barrier.Run();
}

}  // namespace
}  // namespace strata
