// Host time of mapping calls, with and without concurrent work: recorded, but
// not checked. The report of tools/gpu_check shows the figures.

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "strata/tests/testing/devices/virtual_memory_fixture.h"

namespace strata {
namespace {

constexpr int kRounds = 11;
constexpr std::size_t kMostHandles = 32;
constexpr std::size_t kHandleCounts[] = {1, 8, kMostHandles};

using AccessList = std::vector<AccessDescriptor>;

// Host time of each call, by name.
class CallTimes {
 public:
  template <class Call>
  void Time(const std::string& name, Call call) {
    const auto start = std::chrono::steady_clock::now();
    const Status status = call();
    const auto time = std::chrono::steady_clock::now() - start;
    EXPECT_EQ(status, Status::kSuccess) << name;
    times_[name].push_back(std::chrono::nanoseconds(time).count());
  }

  // Records the longest times, with the suffix "_most".
  void RecordMost() const {
    for (const auto& [name, times] : times_) {
      RecordNs(name + "_most", *std::max_element(times.begin(), times.end()));
    }
  }
  // Records the medians with a suffix, and clears the times.
  void Record(const std::string& what) {
    for (auto& [name, times] : times_) {
      std::sort(times.begin(), times.end());
      RecordNs(name + what, times[times.size() / 2]);
    }
    times_.clear();
  }

 private:
  static void RecordNs(const std::string& name, std::int64_t ns) {
    testing::Test::RecordProperty("time_ns_" + name, std::to_string(ns));
  }

  std::map<std::string, std::vector<std::int64_t>> times_;
};

class MappingCostConformanceTest : public VirtualMemoryFixture {
 protected:
  // All calls of a strategy for a series of handles, from creation to release.
  void MapAndUnmap(DevicePtr range, std::size_t count, const AccessList& access,
                   CallTimes& times) {
    std::vector<MemHandle> handles(count);
    for (MemHandle& handle : handles) {
      times.Time("create_memory", [&] {
        return device().CreateMemory(&handle, granule(), MemProperties{});
      });
    }
    for (std::size_t i = 0; i < count; ++i) {
      times.Time("map_range", [&] {
        return device().MapRange(range + i * granule(), granule(), 0,
                                 handles[i]);
      });
    }
    times.Time("set_access", [&] {
      return device().SetAccess(range, count * granule(), access.data(),
                                access.size());
    });
    times.Time("unmap_range",
               [&] { return device().UnmapRange(range, count * granule()); });
    for (const MemHandle handle : handles) {
      times.Time("release_memory",
                 [&] { return device().ReleaseMemory(handle); });
    }
  }

  // Likewise for a second mapping of memory that may be in use.
  void MapAndUnmapAlias(DevicePtr range, MemHandle handle, CallTimes& times) {
    times.Time("map_alias",
               [&] { return device().MapRange(range, granule(), 0, handle); });
    times.Time("unmap_alias",
               [&] { return device().UnmapRange(range, granule()); });
  }

  // Launches work without memory, a few pieces at a time.
  void Launch(const std::string& name, const Stream& stream, CallTimes& times) {
    constexpr int kLaunches = 500;
    constexpr int kMostPending = 50;
    for (int i = 1; i <= kLaunches; ++i) {
      times.Time(name, [&] {
        return Work(stream)->Enqueue(stream, nullptr, 0, 0, 0);
      });
      if (i % kMostPending != 0) continue;
      ASSERT_EQ(device().StreamSynchronize(stream), Status::kSuccess);
    }
  }
};

const AccessDescriptor kOwnAccess{{Location::Kind::kDevice, 0},
                                  Access::kReadWrite};
const AccessDescriptor kPeerAccess{{Location::Kind::kDevice, 1},
                                   Access::kReadWrite};

INSTANTIATE_TEST_SUITE_P(Devices, MappingCostConformanceTest,
                         ::testing::ValuesIn(AllDevices()), NameOfDevice);

// H4: `waits` counts the rounds, of 33, after which the work was complete. The
// work of `same` uses memory of the same range, which the alias maps too. The
// work of `other` uses other memory.
TEST_P(MappingCostConformanceTest, RuleH4PinsMappingBesideWork) {
  const MemHandle used = NewHandle(granule());
  const DevicePtr range = NewRange((1 + kMostHandles) * granule());
  const DevicePtr alias = NewRange(granule());
  const DevicePtr other = NewMemory(granule());
  const Stream stream = NewStream();
  Map(range, granule(), used);
  Allow(range, granule());
  CallTimes times;
  for (const std::string beside : {"nothing", "same", "other"}) {
    std::uint64_t waits = 0;
    for (const std::size_t count : kHandleCounts) {
      for (int round = 0; round < kRounds; ++round) {
        if (beside != "nothing") {
          LongWrite(beside == "same" ? range : other, granule(), kFirst,
                    stream);
        }
        MapAndUnmap(range + granule(), count, {kOwnAccess}, times);
        MapAndUnmapAlias(alias, used, times);
        waits += device().StreamQuery(stream) == Status::kSuccess ? 1 : 0;
        ASSERT_EQ(device().StreamSynchronize(stream), Status::kSuccess);
      }
      times.Record("_" + std::to_string(count) + "_beside_" + beside);
    }
    if (beside == "nothing" || !CanHold()) continue;
    Pin("waits_" + beside, waits);
    if (sim() != nullptr) {
      EXPECT_EQ(waits, 0u) << beside;
    }
  }
}

TEST_P(MappingCostConformanceTest, RuleV10AccessForPeersIsTimed) {
  STRATA_REQUIRE(HasPeers(), kNeedsPeers);
  const DevicePtr range = NewRange(kMostHandles * granule());
  CallTimes times;
  for (const std::size_t count : kHandleCounts) {
    for (int round = 0; round < kRounds; ++round) {
      MapAndUnmap(range, count, {kOwnAccess, kPeerAccess}, times);
    }
    times.Record("_" + std::to_string(count) + "_with_peer");
  }
}

TEST_P(MappingCostConformanceTest, LaunchesBesideMappingAreTimed) {
  STRATA_REQUIRE(!GetParam().faulted,
                 "each call is compared with its failure: one thread only");
  const DevicePtr range = NewRange(kMostHandles * granule());
  const Stream stream = NewStream();
  CallTimes times;
  Launch("launch_alone", stream, times);
  std::atomic<bool> is_done{false};
  std::thread mapper([&] {
    CallTimes unused;
    while (!is_done) MapAndUnmap(range, kMostHandles, {kOwnAccess}, unused);
  });
  Launch("launch_beside_mapping", stream, times);
  is_done = true;
  mapper.join();
  times.RecordMost();
  times.Record("");
}

}  // namespace
}  // namespace strata
