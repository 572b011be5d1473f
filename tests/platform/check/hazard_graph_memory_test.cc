// Memory that graphs allocate and free themselves (cuda_semantics.md P14-P17).

#include <gtest/gtest.h>

#include "strata/tests/platform/check/hazard_fixture.h"

namespace strata::check {
namespace {

class HazardGraphMemoryTest : public HazardFixture {};

// cuda_semantics P17, T62: freed on the origin while a fork still uses it.
TEST_F(HazardGraphMemoryTest, FreeNodeBesideAForksUseIsFoundAtInstantiation) {
  run_.Begin(kA);
  run_.PoolAlloc(kPool, kBlock, kA);
  Fork();
  run_.Write(kPool, kBlock, kB);
  run_.PoolFree(kPool, kA);
  Join();
  run_.End(kA, kGraph);
  EXPECT_EQ(run_.Kinds(), "");
  run_.Instantiate(kExec, kGraph);
  EXPECT_EQ(run_.Kinds(), "graph-use-after-free");
}

TEST_F(HazardGraphMemoryTest, FreeNodeBehindTheJoinIsClean) {
  run_.Begin(kA);
  run_.PoolAlloc(kPool, kBlock, kA);
  Fork();
  run_.Write(kPool, kBlock, kB);
  Join();
  run_.PoolFree(kPool, kA);
  EndAndInstantiate();
  run_.Launch(kExec, kA);
  run_.Launch(kExec, kB);
  EXPECT_EQ(run_.Kinds(), "");
}

TEST_F(HazardGraphMemoryTest, UseBesideTheAllocatingNodeIsFound) {
  run_.Begin(kA);
  Fork();
  run_.PoolAlloc(kPool, kBlock, kA);
  run_.Write(kPool, kBlock, kB);
  Join();
  EndAndInstantiate();
  EXPECT_EQ(run_.Kinds(), "use-before-alloc");
}

// cuda_semantics P14: memory that a graph allocates and does not free.
TEST_F(HazardGraphMemoryTest, GraphMemoryIsThereAfterALaunchAndUntilItsFree) {
  run_.Begin(kA);
  run_.PoolAlloc(kPool, kBlock, kA);
  EndAndInstantiate();
  run_.Launch(kExec, kA);
  run_.Write(kPool, kBlock, kA);
  run_.PoolFree(kPool, kA);
  run_.Launch(kExec, kA);
  run_.Write(kPool, kBlock, kA);
  EXPECT_EQ(run_.Kinds(), "");
  run_.PoolFree(kPool, kA);
  run_.Write(kPool, kBlock, kA);
  EXPECT_EQ(run_.Kinds(), "use-after-free");
}

// The driver orders the allocation of the next launch behind the free: R7.
TEST_F(HazardGraphMemoryTest, GraphMemoryOfTwoLaunchesIsTwoLives) {
  run_.Begin(kA);
  run_.PoolAlloc(kPool, kBlock, kA);
  EndAndInstantiate();
  run_.Launch(kExec, kA);
  run_.Order(kEvent, kA, kB);
  run_.Write(kPool, kBlock, kB);
  run_.PoolFree(kPool, kB);
  run_.Launch(kExec, kA);
  run_.Write(kPool, kBlock, kA);
  run_.PoolFree(kPool, kA);
  EXPECT_EQ(run_.Kinds(), "");
}

// cuda_semantics P14: a successful launch has freed the remaining memory.
TEST_F(HazardGraphMemoryTest, LaunchThatFreesWhatIsStillInUseIsFound) {
  run_.Begin(kA);
  run_.PoolAlloc(kPool, kBlock, kA);
  EndAndInstantiate();
  run_.Launch(kExec, kA);
  run_.Launch(kExec, kA);
  run_.Order(kEvent, kA, kB);
  EXPECT_EQ(run_.Kinds(), "");
  run_.Write(kPool, kBlock, kB);
  run_.Launch(kExec, kA);
  EXPECT_EQ(run_.Kinds(), "use-after-free");
}

TEST_F(HazardGraphMemoryTest, GraphMemoryBeforeAnyLaunchIsFound) {
  run_.Begin(kA);
  run_.PoolAlloc(kPool, kBlock, kA);
  EndAndInstantiate();
  run_.Write(kPool, kBlock, kA);
  EXPECT_EQ(run_.Kinds(), "use-before-alloc");
}

TEST_F(HazardGraphMemoryTest, GraphMemoryFreedByAnotherGraphIsGone) {
  run_.Begin(kA);
  run_.PoolAlloc(kPool, kBlock, kA);
  EndAndInstantiate();
  run_.Begin(kA);
  run_.PoolFree(kPool, kA);
  EndAndInstantiate(kGraph + 2, kExec + 2);
  run_.Launch(kExec, kA);
  run_.Write(kPool, kBlock, kA);
  run_.Launch(kExec + 2, kA);
  EXPECT_EQ(run_.Kinds(), "");
  run_.Write(kPool, kBlock, kA);
  EXPECT_EQ(run_.Kinds(), "use-after-free");
}

// cuda_semantics P14: memory freed in its graph does not exist outside.
TEST_F(HazardGraphMemoryTest, GraphMemoryFreedInsideIsNotThereOutside) {
  run_.Begin(kA);
  run_.PoolAlloc(kPool, kBlock, kA);
  run_.PoolFree(kPool, kA);
  EndAndInstantiate();
  run_.Launch(kExec, kA);
  run_.Write(kPool, kBlock, kA);
  EXPECT_EQ(run_.Kinds(), "use-after-free");
}

// cuda_semantics P16: the driver orders nodes that share addresses.
TEST_F(HazardGraphMemoryTest, NodesMayShareAddresses) {
  run_.Begin(kA);
  for (int i = 0; i < 2; ++i) {
    run_.PoolAlloc(kPool, kBlock, kA);
    run_.Write(kPool, kBlock, kA);
    run_.PoolFree(kPool, kA);
  }
  EndAndInstantiate();
  run_.Launch(kExec, kA);
  run_.Launch(kExec, kA);
  EXPECT_EQ(run_.Kinds(), "");
}

}  // namespace
}  // namespace strata::check
