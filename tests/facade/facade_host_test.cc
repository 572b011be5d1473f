// Host memory through a facade: strategies, pinned memory that streams use,
// NUMA nodes, visitors, limits.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "strata/allocation/error.h"
#include "strata/facade/allocator_facade.h"
#include "strata/strategy/registry.h"
#include "strata/tests/facade/facade_fixture.h"
#include "strata/tests/testing/devices/fake_host.h"
#include "strata/tests/testing/heap_call_counter.h"

namespace strata {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

constexpr Place kPinned = PinnedPlace(0);

// Simulated devices on a host that the test defines.
class FakeHostPlatform final : public Platform {
 public:
  FakeHostPlatform(std::shared_ptr<SimPlatform> sim,
                   std::shared_ptr<HostSystem> host)
      : sim_(std::move(sim)), host_(std::move(host)) {}

  const char* name() const override { return sim_->name(); }
  int device_count() const override { return sim_->device_count(); }
  Device& device(int ordinal) override { return sim_->device(ordinal); }
  std::shared_ptr<HostSystem> host() override { return host_; }

 private:
  std::shared_ptr<SimPlatform> sim_;
  std::shared_ptr<HostSystem> host_;
};

class FacadeHostTest : public FacadeFixture {
 protected:
  // A facade on the host host_.
  AllocatorFacade& BuildOnFakeHost(const std::string& options) {
    facade_ = std::make_unique<AllocatorFacade>(
        Options::Parse(options),
        std::make_shared<FakeHostPlatform>(platform_, host_));
    return *facade_;
  }
  std::uint64_t PinCalls() { return Count(DeviceCall::kMallocHost); }

  std::shared_ptr<FakeHost> host_ = std::make_shared<FakeHost>();
};

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

// cuda_semantics.md M7: the host writes a block at once. So a pooled block may
// be reused only after the work of every named stream is complete. Here, work
// runs only when the host waits for it.
class PinnedReuseTest : public testing::TestWithParam<std::string> {
 protected:
  static constexpr std::size_t kBytes = 4096;

  void SetUp() override {
    PlatformOptions options;
    options.sim_memory_bytes = Mebibytes(64);
    options.sim_data = "backed";
    options.sim_progress = "lazy";
    platform_ = std::make_shared<SimPlatform>(options);
    facade_ = std::make_unique<AllocatorFacade>(
        Options::Parse("strata_pinned_strategy=" + GetParam()), platform_);
    ASSERT_EQ(device().StreamCreate(&stream_, kStreamNonBlocking),
              Status::kSuccess);
    target_ = facade_->Alloc(DevicePlace(0), kBytes);
  }
  void TearDown() override {
    target_.reset();
    facade_.reset();
    EXPECT_EQ(device().StreamDestroy(stream_), Status::kSuccess);
  }

  SimDevice& device() { return platform_->sim_device(0); }
  static DevicePtr PtrOf(const AllocationPtr& allocation) {
    return reinterpret_cast<DevicePtr>(allocation->data());
  }
  // A pinned block full of `value`. A copy in stream_ will read it.
  AllocationPtr Submit(int value) {
    AllocationPtr source = facade_->Alloc(kPinned, kBytes);
    std::memset(source->data(), value, kBytes);
    EXPECT_EQ(
        device().MemcpyAsync(PtrOf(target_), PtrOf(source), kBytes, stream_),
        Status::kSuccess);
    return source;
  }
  // The byte that the copy wrote to the device.
  int Arrived() {
    std::vector<unsigned char> bytes(kBytes);
    EXPECT_EQ(device().MemcpyAsync(reinterpret_cast<DevicePtr>(bytes.data()),
                                   PtrOf(target_), kBytes, stream_),
              Status::kSuccess);
    EXPECT_EQ(device().StreamSynchronize(stream_), Status::kSuccess);
    for (const unsigned char byte : bytes) EXPECT_EQ(byte, bytes[0]);
    return bytes[0];
  }

  std::shared_ptr<SimPlatform> platform_;
  std::unique_ptr<AllocatorFacade> facade_;
  Stream stream_;
  AllocationPtr target_;
};

TEST_P(PinnedReuseTest, ABlockStaysAsideUntilTheNamedStreamsWorkIsDone) {
  AllocationPtr source = Submit('A');
  void* const where = source->data();
  facade_->RecordStream(source, stream_);
  source.reset();
  const AllocationPtr next = facade_->Alloc(kPinned, kBytes);
  EXPECT_NE(next->data(), where);
  std::memset(next->data(), 'B', kBytes);
  EXPECT_EQ(Arrived(), 'A');
}

TEST_P(PinnedReuseTest, FreeingOnAStreamNamesItToo) {
  AllocationPtr source = Submit('A');
  Allocator* owner = source->owner();
  owner->Free(std::move(source), stream_);
  std::memset(facade_->Alloc(kPinned, kBytes)->data(), 'B', kBytes);
  EXPECT_EQ(Arrived(), 'A');
}

// The fault that the rule prevents: this caller did not name the stream.
TEST_P(PinnedReuseTest, WithoutTheNameTheCopyReadsWhatCameLater) {
  AllocationPtr source = Submit('A');
  source.reset();
  std::memset(facade_->Alloc(kPinned, kBytes)->data(), 'B', kBytes);
  EXPECT_EQ(Arrived(), 'B');
}

INSTANTIATE_TEST_SUITE_P(Pooled, PinnedReuseTest,
                         testing::Values("auto", "pool", "bfc",
                                         "naive_best_fit", "thread_local"),
                         [](const auto& row) { return row.param; });

TEST_F(FacadeHostTest, ThreadsSharePinnedMemoryThatStreamsUse) {
  Build("strata_pinned_strategy=pool,pool_size_limit=5");
  std::vector<Stream> streams;
  for (int i = 0; i < 4; ++i) streams.push_back(NewStream());
  std::vector<std::thread> threads;
  for (const Stream stream : streams) {
    threads.emplace_back([this, stream] {
      for (std::size_t i = 0; i < 500; ++i) {
        AllocationPtr one = facade().Alloc(kPinned, 256 * (1 + i % 9));
        std::memset(one->data(), 1, one->size());
        facade().RecordStream(one, stream);
        if (i % 100 == 0) facade().Release(kPinned);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(facade().GetStats(kPinned).live_allocations(), 0U);
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

// ---- Visitors.

struct Visit {
  Place place;
  std::string visitor;
  int change;

  friend bool operator==(const Visit&, const Visit&) = default;
};

std::ostream& operator<<(std::ostream& out, const Visit& visit) {
  return out << ToString(visit.place) << " " << visit.visitor << " "
             << visit.change;
}

TEST_F(FacadeHostTest, VisitorsSeeEachChunkOnceForwardsThenBackwards) {
  Build();
  for (const Place place : facade().places()) {
    std::vector<Visit> visits;
    for (const char* name : {"one", "two"}) {
      facade().AddVisitor(
          place,
          [&visits, name](Place at, void* data, std::size_t bytes, int change) {
            EXPECT_NE(data, nullptr);
            EXPECT_GE(bytes, 1000U);
            visits.push_back({at, name, change});
          });
    }
    for (int i = 0; i < 10; ++i) facade().Alloc(place, 1000).reset();
    EXPECT_THAT(visits,
                ElementsAre(Visit{place, "one", 1}, Visit{place, "two", 1}));
    visits.clear();
    facade().Release(place);
    EXPECT_THAT(visits,
                ElementsAre(Visit{place, "two", -1}, Visit{place, "one", -1}));
  }
}

// tf_bfc.md §2, SubAllocator: the index is the number of the NUMA node.
TEST_F(FacadeHostTest, AVisitorIsToldTheNode) {
  host_->nodes = {0, 1};
  BuildOnFakeHost("strata_numa");
  std::vector<Place> places;
  for (const int node : {0, 1}) {
    facade().AddVisitor(HostPlace(node),
                        [&places](Place place, void*, std::size_t, int change) {
                          if (change > 0) places.push_back(place);
                        });
  }
  facade().Alloc(HostPlace(1), 1).reset();
  facade().Alloc(HostPlace(0), 1).reset();
  EXPECT_THAT(places, ElementsAre(HostPlace(1), HostPlace(0)));
  facade_.reset();  // visits the released chunks while `places` lives
}

// tf_bfc.md §2, ProcessState: with visitors, the host has a pool.
TEST_F(FacadeHostTest, AVisitorMakesThePlainHostAPool) {
  BuildOnFakeHost("");
  EXPECT_THAT(facade().Layers(HostPlace()), Contains("direct"));
  facade().AddVisitor(HostPlace(), [](Place, void*, std::size_t, int) {});
  EXPECT_THAT(facade().Layers(HostPlace()), Contains("pool"));
  void* first = facade().Alloc(HostPlace(), Mebibytes(1))->data();
  EXPECT_EQ(facade().Alloc(HostPlace(), Mebibytes(1))->data(), first);
  EXPECT_EQ(host_->locked().size(), 1U);
}

TEST_F(FacadeHostTest, AVisitorLeavesAStrategyThatWasAskedFor) {
  Build("strata_host_strategy=direct");
  facade().AddVisitor(HostPlace(), [](Place, void*, std::size_t, int) {});
  EXPECT_THAT(facade().Layers(HostPlace()), Contains("direct"));
}

TEST_F(FacadeHostTest, CallbacksStayWhenAVisitorChangesTheStrategy) {
  Build("strata_host_limit=1MiB");
  int asked = 0;
  const auto callback =
      facade().AddOutOfMemoryCallback(HostPlace(), [&](Place, std::size_t) {
        ++asked;
        return std::size_t{0};
      });
  facade().AddVisitor(HostPlace(), [](Place, void*, std::size_t, int) {});
  EXPECT_THROW(facade().Alloc(HostPlace(), Mebibytes(2)), OutOfMemory);
  EXPECT_EQ(asked, 1);
}

TEST_F(FacadeHostTest, AVisitorThatCannotBeAddedChangesNothing) {
  if (!HeapFailure::is_possible()) GTEST_SKIP() << "a sanitizer has the heap";
  facade_.reset();
  const auto users = platform_.use_count();
  bool is_added = false;
  std::uint64_t fault = 0;
  while (!is_added) {
    SCOPED_TRACE("call " + std::to_string(++fault));
    Build("");
    {
      const HeapFailure failure(fault);
      try {
        facade().AddVisitor(HostPlace(), [](Place, void*, std::size_t, int) {});
      } catch (const std::bad_alloc&) {
      }
      is_added = failure.calls() < fault;
    }
    EXPECT_THAT(facade().Layers(HostPlace()),
                Contains(is_added ? "pool" : "direct"));
    EXPECT_NE(facade().Alloc(HostPlace(), 1000), nullptr);
    facade_.reset();
    EXPECT_EQ(platform_.use_count(), users);  // no chain remains
  }
  EXPECT_GT(fault, 10U);
}

// "Visitors must be added before creation".
TEST_F(FacadeHostTest, RefusesAVisitorAfterTheFirstChunk) {
  Build();
  const auto visitor = [](Place, void*, std::size_t, int) {};
  for (const Place place : facade().places()) {
    facade().Alloc(place, 1).reset();
    EXPECT_THROW(facade().AddVisitor(place, visitor), std::logic_error);
  }
  EXPECT_THROW(facade().AddVisitor(DevicePlace(7), visitor),
               std::invalid_argument);
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
