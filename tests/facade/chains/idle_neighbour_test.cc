// Facades of one device: before a request of one fails, the others release idle
// memory.

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "strata/tests/facade/facade_fixture.h"

namespace strata {
namespace {

class IdleNeighbourTest : public FacadeFixture {
 protected:
  explicit IdleNeighbourTest(const std::string& progress = "inline",
                             int devices = 1)
      : FacadeFixture(devices, progress) {}
  ~IdleNeighbourTest() override { other_.reset(); }

  // Requests fail at once.
  void BuildBoth(const std::string& one, const std::string& two) {
    const std::string both = "gpu_allocator_retry_time=0,";
    Build(both + one);
    other_ = std::make_unique<AllocatorFacade>(Options::Parse(both + two),
                                               platform_);
  }
  void BuildBoth(const std::string& options = "") {
    BuildBoth(options, options);
  }
  AllocatorFacade& other() { return *other_; }

  static bool IsMet(AllocatorFacade& facade, std::size_t bytes,
                    Place place = kPlace) {
    Failure failure;
    return facade.TryAlloc(place, Request{bytes}, failure) != nullptr;
  }
  static std::size_t Reserved(AllocatorFacade& facade) {
    return facade.GetStats(kPlace).reserved_bytes;
  }

  std::unique_ptr<AllocatorFacade> other_;
};

class IdleNeighbourStrategyTest
    : public IdleNeighbourTest,
      public testing::WithParamInterface<const char*> {
 protected:
  void BuildStrategy() {
    BuildBoth("allocator_strategy=" + std::string(GetParam()));
  }
  // The driver uses free memory of a pool for other pools (cuda_semantics.md
  // P12).
  static bool IsSharedByDriver() {
    return GetParam() == std::string("cuda_malloc_async");
  }
};

TEST_P(IdleNeighbourStrategyTest, GivesWhatIsIdleBeforeARequestFails) {
  BuildStrategy();
  other().Alloc(kPlace, Mebibytes(50)).reset();
  EXPECT_TRUE(IsMet(facade(), Mebibytes(40)));
  EXPECT_LE(Reserved(other()) + Reserved(facade()), kMemoryBytes);
  // And in the other direction.
  EXPECT_TRUE(IsMet(other(), Mebibytes(40)));
}

TEST_P(IdleNeighbourStrategyTest, KeepsWhatIsInUse) {
  BuildStrategy();
  const AllocationPtr held = other().Alloc(kPlace, Mebibytes(30));
  EXPECT_FALSE(IsMet(facade(), Mebibytes(40)));
  EXPECT_EQ(other().GetStats(kPlace).live_allocations(), 1U);
}

// The device has less memory than at the facade's last query.
TEST_F(IdleNeighbourTest, VirtualMemoryMovesItsOwnWhereAnotherTookTheRoom) {
  BuildBoth("allocator_strategy=virtual_memory,strata_vmm_remap=lazy");
  std::vector<AllocationPtr> own;
  for (int i = 0; i < 4; ++i) {
    own.push_back(facade().Alloc(kPlace, Mebibytes(4)));
  }
  own[0].reset();
  own[2].reset();
  const AllocationPtr taken = other().Alloc(kPlace, Mebibytes(36));
  EXPECT_TRUE(IsMet(facade(), Mebibytes(20)));
  EXPECT_EQ(Reserved(facade()), Mebibytes(28));
  EXPECT_EQ(Reserved(other()), Mebibytes(36));
}

TEST_F(IdleNeighbourTest, VirtualMemorySeesWhatAnotherGaveBack) {
  BuildBoth("allocator_strategy=virtual_memory");
  AllocationPtr taken = other().Alloc(kPlace, Mebibytes(50));
  const AllocationPtr own = facade().Alloc(kPlace, Mebibytes(8));
  taken.reset();
  other().Release(kPlace);
  EXPECT_TRUE(IsMet(facade(), Mebibytes(50)));
}

TEST_P(IdleNeighbourStrategyTest, GivesNothingForARequestThatCannotBeMet) {
  BuildStrategy();
  other().Alloc(kPlace, Mebibytes(30)).reset();
  const std::size_t reserved = Reserved(other());
  EXPECT_FALSE(IsMet(facade(), kMemoryBytes + 1));
  EXPECT_EQ(Reserved(other()), reserved);
}

TEST_P(IdleNeighbourStrategyTest, LeavesAFacadeWithAnAnnouncedCaptureAlone) {
  if (IsSharedByDriver()) GTEST_SKIP() << "the driver gives it all the same";
  BuildStrategy();
  other().Alloc(kPlace, Mebibytes(50)).reset();
  const std::size_t reserved = Reserved(other());
  const GraphPoolId pool =
      other().PrepareMemoryPoolForCUDAGraph(0, NewStream());
  EXPECT_FALSE(IsMet(facade(), Mebibytes(40)));
  EXPECT_EQ(Reserved(other()), reserved);
  other().CaptureEnded(pool);
  other().RemoveMemoryPoolOfCUDAGraph(pool);
  EXPECT_TRUE(IsMet(facade(), Mebibytes(40)));
}

TEST_P(IdleNeighbourStrategyTest, AsksNobodyBesideItsOwnAnnouncedCapture) {
  if (IsSharedByDriver()) GTEST_SKIP() << "the driver gives it all the same";
  BuildStrategy();
  other().Alloc(kPlace, Mebibytes(50)).reset();
  const std::size_t reserved = Reserved(other());
  const GraphPoolId pool =
      facade().PrepareMemoryPoolForCUDAGraph(0, NewStream());
  EXPECT_FALSE(IsMet(facade(), Mebibytes(40)));
  EXPECT_EQ(Reserved(other()), reserved);
  facade().CaptureEnded(pool);
  facade().RemoveMemoryPoolOfCUDAGraph(pool);
  EXPECT_TRUE(IsMet(facade(), Mebibytes(40)));
}

INSTANTIATE_TEST_SUITE_P(, IdleNeighbourStrategyTest,
                         testing::Values("auto_growth", "bfc", "naive_best_fit",
                                         "thread_local", "pool",
                                         "cuda_malloc_async"),
                         [](const auto& name) {
                           return std::string(name.param);
                         });

TEST_F(IdleNeighbourTest, TakesNoMoreThanItNeeds) {
  BuildBoth("auto_growth_chunk_rule=exact");
  {
    std::vector<AllocationPtr> chunks;
    for (int i = 0; i < 6; ++i) {
      chunks.push_back(other().Alloc(kPlace, Mebibytes(10)));
    }
  }
  EXPECT_TRUE(IsMet(facade(), Mebibytes(20)));
  EXPECT_EQ(Reserved(other()), Mebibytes(40));
}

// For the driver, a block that a chain caches for its next request is in use.
TEST_F(IdleNeighbourTest, GivesTheBlocksThatItKeepsOfTheDriver) {
  for (const bool shares : {false, true}) {
    BuildBoth("", std::string("allocator_strategy=cuda_malloc_async,") +
                      "strata_share_idle=" + (shares ? "true" : "false"));
    for (int i = 0; i < 2; ++i) other().Alloc(kPlace, 1024).reset();
    EXPECT_EQ(IsMet(facade(), kMemoryBytes), shares);
    other_.reset();
  }
}

TEST_F(IdleNeighbourTest, OneThatOptsOutNeitherGivesNorGets) {
  BuildBoth("", "strata_share_idle=false");
  other().Alloc(kPlace, Mebibytes(50)).reset();
  EXPECT_FALSE(IsMet(facade(), Mebibytes(40)));
  other().Release(kPlace);
  facade().Alloc(kPlace, Mebibytes(50)).reset();
  EXPECT_FALSE(IsMet(other(), Mebibytes(40)));
}

// A release of the other facade would not make room.
TEST_F(IdleNeighbourTest, IsNotAskedForALimitOfOnesOwn) {
  BuildBoth("gpu_memory_limit_mb=20", "");
  other().Alloc(kPlace, Mebibytes(30)).reset();
  const std::size_t reserved = Reserved(other());
  EXPECT_FALSE(IsMet(facade(), Mebibytes(40)));
  EXPECT_EQ(Reserved(other()), reserved);
}

// A thread of another facade must not run the visitors.
TEST_F(IdleNeighbourTest, GivesNoChunksThatVisitorsKnow) {
  BuildBoth("allocator_strategy=auto_growth");
  int visits = 0;
  other().AddVisitor(kPlace, [&](Place, void*, std::size_t, int) { ++visits; });
  other().Alloc(kPlace, Mebibytes(50)).reset();
  EXPECT_FALSE(IsMet(facade(), Mebibytes(40)));
  EXPECT_EQ(visits, 1);
  other().Release(kPlace);
  EXPECT_EQ(visits, 2);
  facade().Alloc(kPlace, Mebibytes(50)).reset();
  EXPECT_TRUE(IsMet(other(), Mebibytes(40)));  // succeeds anyway
  EXPECT_EQ(visits, 3);
  other_.reset();
  EXPECT_EQ(visits, 4);
}

TEST_F(IdleNeighbourTest, AsksNoCallbacksOfOthers) {
  BuildBoth();
  const AllocationPtr held = other().Alloc(kPlace, Mebibytes(50));
  int calls = 0;
  const auto callback = other().AddOutOfMemoryCallback(
      kPlace, [&](Place, std::size_t) -> std::size_t {
        ++calls;
        return 0;
      });
  EXPECT_FALSE(IsMet(facade(), Mebibytes(40)));
  EXPECT_EQ(calls, 0);
}

// Memory that its own callbacks free comes first.
TEST_F(IdleNeighbourTest, IsTheLastRung) {
  BuildBoth();
  AllocationPtr spare = facade().Alloc(kPlace, Mebibytes(20));
  other().Alloc(kPlace, Mebibytes(30)).reset();
  const std::size_t reserved = Reserved(other());
  const auto callback =
      facade().AddOutOfMemoryCallback(kPlace, [&](Place, std::size_t) {
        spare.reset();
        return Mebibytes(20);
      });
  EXPECT_TRUE(IsMet(facade(), Mebibytes(30)));
  EXPECT_EQ(spare, nullptr);
  EXPECT_EQ(Reserved(other()), reserved);
}

TEST_F(IdleNeighbourTest, AsksAllOthersOfTheDevice) {
  BuildBoth("auto_growth_chunk_rule=exact");
  AllocatorFacade third(Options::Parse("auto_growth_chunk_rule=exact"),
                        platform_);
  other().Alloc(kPlace, Mebibytes(20)).reset();
  third.Alloc(kPlace, Mebibytes(20)).reset();
  EXPECT_TRUE(IsMet(facade(), Mebibytes(60)));
}

// "Waits for no stream": pending work never completes by itself here.
class IdleNeighbourWorkTest : public IdleNeighbourStrategyTest {
 protected:
  IdleNeighbourWorkTest() {
    PlatformOptions options;
    options.sim_progress = "manual";
    options.sim_memory_bytes = kMemoryBytes;
    platform_ = std::make_shared<SimPlatform>(options);
  }
};

TEST_P(IdleNeighbourWorkTest, KeepsWhatWorkMayStillUse) {
  BuildStrategy();
  const Stream stream = NewStream();
  AllocationPtr used = other().Alloc(kPlace, Mebibytes(50), stream);
  EXPECT_EQ(device().MemsetAsync(reinterpret_cast<DevicePtr>(used->data()), 1,
                                 64, stream),
            Status::kSuccess);
  used.reset();
  EXPECT_FALSE(IsMet(facade(), Mebibytes(40)));
  EXPECT_GT(device().PendingCount(), 0U);
  EXPECT_EQ(device().StreamSynchronize(stream), Status::kSuccess);
  EXPECT_TRUE(IsMet(facade(), Mebibytes(40)));
}

INSTANTIATE_TEST_SUITE_P(, IdleNeighbourWorkTest,
                         testing::Values("auto_growth", "bfc", "naive_best_fit",
                                         "thread_local", "pool",
                                         "cuda_malloc_async"),
                         [](const auto& name) {
                           return std::string(name.param);
                         });

class IdleNeighbourDevicesTest : public IdleNeighbourTest {
 protected:
  IdleNeighbourDevicesTest() : IdleNeighbourTest("inline", 2) {}
};

TEST_F(IdleNeighbourDevicesTest, HasNothingForAnotherDevice) {
  BuildBoth();
  other().Alloc(DevicePlace(1), Mebibytes(50)).reset();
  const AllocationPtr all = other().Alloc(kPlace, Mebibytes(50));
  EXPECT_FALSE(IsMet(facade(), Mebibytes(40)));
  EXPECT_GE(other().GetStats(DevicePlace(1)).reserved_bytes, Mebibytes(50));
}

// The first devices of two simulated platforms are different devices.
TEST_F(IdleNeighbourTest, HasNothingForAnotherPlatform) {
  Build("gpu_allocator_retry_time=0");
  AllocatorFacade far(
      Options::Parse("strata_platform=sim,strata_sim_memory=64MiB"));
  far.Alloc(kPlace, Mebibytes(50)).reset();
  EXPECT_FALSE(IsMet(facade(), Mebibytes(80)));
  EXPECT_GE(Reserved(far), Mebibytes(50));
}

// ---- Threads.

// Neither facade releases memory in use, nor waits for the other.
TEST_F(IdleNeighbourTest, BothMayRunOutAtOnce) {
  BuildBoth("auto_growth_chunk_rule=exact");
  std::atomic<int> met{0};
  const auto run = [&](AllocatorFacade& facade) {
    for (int i = 0; i < 300; ++i) {
      if (IsMet(facade, Mebibytes(40))) ++met;
    }
  };
  std::thread two([&] { run(other()); });
  std::thread three([&] { run(other()); });
  run(facade());
  two.join();
  three.join();
  EXPECT_GT(met, 0);
}

TEST_F(IdleNeighbourTest, MayBeDestroyedWhileItIsAsked) {
  Build("gpu_allocator_retry_time=0");
  std::atomic<bool> is_over{false};
  std::thread asking([&] {
    while (!is_over) IsMet(facade(), Mebibytes(40));
  });
  for (int i = 0; i < 100; ++i) {
    AllocatorFacade brief(Options::Parse("gpu_allocator_retry_time=0"),
                          platform_);
    IsMet(brief, Mebibytes(50));
  }
  is_over = true;
  asking.join();
}

// The child's memory contains the facades of the parent, locked by threads that
// do not exist in the child.
TEST_F(IdleNeighbourTest, AForkedChildDoesNotAskItsParentsFacades) {
  BuildBoth();
  other().Alloc(kPlace, Mebibytes(50)).reset();
  const std::size_t reserved = Reserved(other());
  const pid_t child = fork();
  if (child == 0) {
    alarm(30);
    AllocatorFacade own(Options::Parse("gpu_allocator_retry_time=0"),
                        platform_);
    const bool is_met = IsMet(own, Mebibytes(40));
    _exit(is_met || Reserved(other()) != reserved ? 1 : 0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

}  // namespace
}  // namespace strata
