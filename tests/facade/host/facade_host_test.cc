// Host memory through a facade: strategies, limits, NUMA nodes, environment.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

#include "strata/allocation/error.h"
#include "strata/facade/allocator_facade.h"
#include "strata/strategy/registry.h"
#include "strata/tests/facade/host/facade_host_fixture.h"

namespace strata {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

TEST_F(FacadeHostTest, EveryStrategyServesHostAndPinnedMemory) {
  for (const std::string& strategy : StrategyNames()) {
    // Driver pools hold device memory only.
    if (strategy == "cuda_malloc_async") continue;
    Build("strata_host_strategy=" + strategy +
          ",strata_pinned_strategy=" + strategy);
    for (const Place place : {HostPlace(), kPinned}) {
      EXPECT_THAT(facade().Layers(place), Contains(strategy));
      for (const std::size_t bytes : {1U, 1000U, 3'000'000U}) {
        const AllocationPtr allocation = facade().Alloc(place, bytes);
        std::memset(allocation->data(), 1, allocation->size());
      }
      EXPECT_EQ(facade().GetStats(place).live_allocations(), 0U);
      facade().Release(place);
      EXPECT_EQ(facade().GetStats(place).reserved_bytes, 0U) << strategy;
    }
  }
}

TEST_F(FacadeHostTest, PinnedMemoryIsPooledByDefault) {
  Build();
  void* first = facade().Alloc(kPinned, 1000)->data();
  EXPECT_EQ(facade().Alloc(kPinned, 1000)->data(), first);
  EXPECT_EQ(PinCalls(), 1U);
}

TEST_F(FacadeHostTest, PinnedMemoryIsNotPooledWhereMarksAreNotHonoured) {
  Build("use_stream_safe_cuda_allocator=0");
  EXPECT_THAT(facade().Layers(kPinned), Contains("direct"));
}

TEST_F(FacadeHostTest, TheSystemAllocatorServesEveryPlaceIfAsked) {
  Build("use_system_allocator");
  for (const Place place : facade().places()) {
    EXPECT_THAT(facade().Layers(place), Contains("direct"));
  }
}

// paddle.md §2, use_auto_growth_pinned_allocator: sizes in steps of 64 KiB.
TEST_F(FacadeHostTest, TheOldSwitchForPinnedMemoryRoundsTo64KiB) {
  Build("use_auto_growth_pinned_allocator");
  EXPECT_THAT(facade().Layers(kPinned), Contains("auto_growth"));
  EXPECT_EQ(facade().Alloc(kPinned, 1)->size(), Kibibytes(64));
  EXPECT_EQ(facade().Alloc(kPinned, Kibibytes(64) + 1)->size(), Kibibytes(128));
  EXPECT_EQ(facade().Alloc(DevicePlace(0), 1)->size(), 256U);
}

TEST_F(FacadeHostTest, FlagsAboutDeviceChunksLeavePinnedMemoryAlone) {
  Build("auto_growth_chunk_size_in_mb=16");
  const AllocationPtr device = facade().Alloc(DevicePlace(0), 1);
  const AllocationPtr pinned = facade().Alloc(kPinned, 1);
  EXPECT_EQ(facade().GetStats(DevicePlace(0)).reserved_bytes, Mebibytes(16));
  EXPECT_EQ(facade().GetStats(kPinned).reserved_bytes, Mebibytes(2));
}

// The limit of bfc and its initial size concern device memory. Otherwise a
// limit for devices would take memory of the host too.
TEST_F(FacadeHostTest, FlagsAboutTheDevicesMemoryLeaveBfcOfTheHostAlone) {
  for (const char* of_devices :
       {"bfc_memory_limit=4MiB,bfc_allow_growth=false",
        "bfc_memory_fraction=0.1,bfc_two_ended",
        "bfc_system_memory_in_mb=1,bfc_allow_growth=false"}) {
    Build(std::string("strata_host_strategy=bfc,strata_pinned_strategy=bfc,"
                      "strata_host_limit=64MiB,strata_pinned_limit=64MiB,")
              .append(of_devices));
    for (const Place place : {HostPlace(), kPinned}) {
      facade().Alloc(place, 1000).reset();
      EXPECT_EQ(facade().GetStats(place).reserved_bytes, Mebibytes(2))
          << of_devices;
      EXPECT_NE(facade().Alloc(place, Mebibytes(40)), nullptr) << of_devices;
    }
  }
}

TEST_F(FacadeHostTest, LimitsBoundWhatIsHeld) {
  Build("strata_pinned_limit=4MiB,strata_host_limit=1MiB");
  const AllocationPtr pinned = facade().Alloc(kPinned, Mebibytes(4));
  try {
    facade().Alloc(kPinned, 1);
    FAIL() << "the limit was not kept";
  } catch (const OutOfMemory& error) {
    EXPECT_EQ(error.failure().reason, Failure::Reason::kLimit);
    EXPECT_EQ(error.failure().limit_bytes, Mebibytes(4));
  }
  EXPECT_THROW(facade().Alloc(HostPlace(), Mebibytes(1) + 1), OutOfMemory);
}

// Idle memory of a pool does not count against a limit (tf_bfc.md W19).
TEST_F(FacadeHostTest, ALimitTakesWhatAPoolKeeps) {
  Build("strata_pinned_limit=4MiB,strata_pinned_strategy=pool");
  facade().Alloc(kPinned, Mebibytes(3)).reset();
  EXPECT_EQ(facade().GetStats(kPinned).reserved_bytes, Mebibytes(3));
  EXPECT_EQ(facade().Alloc(kPinned, Mebibytes(2))->size(), Mebibytes(2));
}

// ---- NUMA nodes.

TEST_F(FacadeHostTest, HasOneHostPlaceUnlessNodesAreToldApart) {
  host_->nodes = {0, 1};
  BuildOnFakeHost("");
  EXPECT_THAT(facade().places(), Not(Contains(HostPlace(1))));
  facade().Alloc(HostPlace(), Mebibytes(1)).reset();
  EXPECT_TRUE(host_->preferred().empty());
}

TEST_F(FacadeHostTest, HasAHostPlaceForEachNumaNode) {
  host_->nodes = {0, 1};
  BuildOnFakeHost("strata_numa");
  EXPECT_THAT(facade().places(),
              ElementsAre(HostPlace(0), HostPlace(1), DevicePlace(0),
                          PinnedPlace(0), ManagedPlace(0)));
  for (const int node : {0, 1}) {
    EXPECT_THAT(facade().Layers(HostPlace(node)),
                AllOf(Contains("pool"), Contains("numa")));
    const AllocationPtr allocation = facade().Alloc(HostPlace(node), 5000);
    EXPECT_EQ(allocation->place(), HostPlace(node));
    EXPECT_EQ(host_->preferred().back().node, node);
    EXPECT_EQ(host_->preferred().back().data, allocation->data());
  }
  EXPECT_THAT(
      TextOf<std::invalid_argument>([&] { facade().Alloc(HostPlace(2), 1); }),
      HasSubstr("host:2"));
}

// The system rounds the piece up to whole pages.
TEST_F(FacadeHostTest, APieceOfANodeServesItsSizeAgain) {
  host_->nodes = {0, 1};
  BuildOnFakeHost("strata_numa");
  const void* const first = facade().Alloc(HostPlace(1), 5000)->data();
  EXPECT_EQ(facade().Alloc(HostPlace(1), 5000)->data(), first);
  EXPECT_EQ(host_->preferred().size(), 1U);
}

TEST_F(FacadeHostTest, NodesMayHaveGaps) {
  host_->nodes = {1, 3};
  BuildOnFakeHost("strata_numa");
  EXPECT_THAT(facade().places(),
              testing::IsSupersetOf({HostPlace(1), HostPlace(3)}));
  EXPECT_THROW(facade().Alloc(HostPlace(2), 1), std::invalid_argument);
  // The default place belongs to no node, because node 0 has no memory.
  EXPECT_THAT(facade().Layers(HostPlace()),
              AllOf(Contains("direct"), Contains("host")));
}

TEST_F(FacadeHostTest, WithoutNodesThereIsOneHostPlace) {
  BuildOnFakeHost("strata_numa");
  EXPECT_THAT(facade().places(), Not(Contains(HostPlace(1))));
  EXPECT_THAT(facade().Layers(HostPlace()),
              AllOf(Contains("direct"), Contains("host")));
}

TEST_F(FacadeHostTest, AKernelThatBindsNothingStillGivesMemory) {
  host_->nodes = {0, 1};
  host_->prefer_error = EPERM;
  BuildOnFakeHost("strata_numa");
  testing::internal::CaptureStderr();
  const AllocationPtr allocation = facade().Alloc(HostPlace(1), 5000);
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("host:1"));
  std::memset(allocation->data(), 1, 5000);
}

TEST_F(FacadeHostTest, StatisticsTellNodesApart) {
  host_->nodes = {0, 1};
  BuildOnFakeHost("strata_numa");
  const AllocationPtr allocation = facade().Alloc(HostPlace(1), 5000);
  EXPECT_EQ(facade().GetStats(HostPlace(0)).in_use_bytes, 0U);
  const Stats stats = facade().GetStats(HostPlace(1));
  EXPECT_EQ(stats.requested_bytes, 5000U);
  EXPECT_EQ(stats.in_use_bytes, AlignUp(5000, HostPageBytes()));
  EXPECT_THAT(facade().StatsJson(), HasSubstr("\"host:1\""));
}

// ---- Locks and warnings.

// paddle.md §2, use_pinned_memory: the memory of a pool is locked.
TEST_F(FacadeHostTest, LocksWhatAPoolHolds) {
  BuildOnFakeHost("strata_host_strategy=pool");
  facade().Alloc(HostPlace(), Mebibytes(1)).reset();
  EXPECT_EQ(host_->locked().size(), 1U);
  BuildOnFakeHost("strata_host_strategy=pool,use_pinned_memory=0");
  facade().Alloc(HostPlace(), Mebibytes(1)).reset();
  EXPECT_EQ(host_->locked().size(), 1U);
  BuildOnFakeHost("");
  facade().Alloc(HostPlace(), Mebibytes(1)).reset();
  EXPECT_EQ(host_->locked().size(), 1U) << "direct is never locked";
}

TEST_F(FacadeHostTest, WarnsOfLargeAllocationsAsTheOptionsSay) {
  host_->memory_bytes = Mebibytes(100);
  const auto log_of = [&](const std::string& options, std::size_t bytes) {
    BuildOnFakeHost(options);
    testing::internal::CaptureStderr();
    facade().Alloc(HostPlace(), bytes).reset();
    return testing::internal::GetCapturedStderr();
  };
  EXPECT_THAT(log_of("", Mebibytes(11)), HasSubstr("an allocation of 11.0"));
  EXPECT_EQ(log_of("strata_host_warn_large=0.2", Mebibytes(11)), "");
  EXPECT_THAT(log_of("strata_host_warn_large=0", Mebibytes(51)),
              HasSubstr("in use are more"));
  EXPECT_EQ(log_of("strata_host_warn_large=0,strata_host_warn_total=0",
                   Mebibytes(60)),
            "");
}

// ---- The environment of TensorFlow.

class EnvironmentTest : public FacadeHostTest {
 protected:
  ~EnvironmentTest() override {
    facade_.reset();
    for (const char* name : set_) unsetenv(name);
  }
  void Set(const char* name, const char* value) {
    setenv(name, value, 1);
    set_.push_back(name);
  }

 private:
  std::vector<const char*> set_;
};

TEST_F(EnvironmentTest, IsHeardOnlyIfAsked) {
  Set("TF_GPU_HOST_MEM_LIMIT_IN_MB", "4");
  Build();
  EXPECT_EQ(facade().GetStats(kPinned).limit_bytes, 0U);
  Build("strata_tf_environment");
  EXPECT_EQ(facade().GetStats(kPinned).limit_bytes, Mebibytes(4));
}

TEST_F(EnvironmentTest, AWrongValueIsRefusedWhenTheFacadeIsBuilt) {
  Set("TF_CPU_ALLOCATOR_USE_BFC", "maybe");
  Build();
  EXPECT_THAT(
      TextOf<std::invalid_argument>([&] { Build("strata_tf_environment"); }),
      AllOf(HasSubstr("TF_CPU_ALLOCATOR_USE_BFC"), HasSubstr("maybe")));
}

}  // namespace
}  // namespace strata
