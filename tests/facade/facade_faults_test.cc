// Each device call of a session fails once. The session succeeds or ends in
// clean errors, and nothing leaks.

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "strata/allocation/error.h"
#include "strata/facade/allocator_facade.h"
#include "strata/platform/calls/device_call.h"
#include "strata/tests/facade/facade_fixture.h"

namespace strata {
namespace {

// Calls that release something. When one fails, the device keeps the object,
// and the facade cannot change that.
bool GivesBack(DeviceCall call) {
  return call == DeviceCall::kMemFree || call == DeviceCall::kFreeHost ||
         call == DeviceCall::kEventDestroy ||
         call == DeviceCall::kStreamDestroy || call == DeviceCall::kPoolDestroy;
}

class Session {
 public:
  Session(const std::string& options, const FaultRule* fault) {
    PlatformOptions sim;
    sim.sim_memory_bytes = Mebibytes(64);
    platform_ = std::make_shared<SimPlatform>(sim);
    for (Stream& stream : streams_) {
      EXPECT_EQ(device().StreamCreate(&stream, kStreamNonBlocking),
                Status::kSuccess);
    }
    facade_ =
        std::make_unique<AllocatorFacade>(Options::Parse(options), platform_);
    if (fault != nullptr) device().AddFault(*fault);
  }

  SimDevice& device() { return platform_->sim_device(0); }

  void Run() {
    const Stream a = streams_[0];
    const Stream b = streams_[1];
    AllocationPtr small = Alloc(Request{1000}, a);
    AllocationPtr large = Alloc(Request{Mebibytes(20)}, a);
    AllocationPtr aligned = Alloc(Request{1000, 1 << 16}, b);
    Try([&] { facade_->Wrap(b.handle, 0); });
    AllocationPtr managed = Alloc(Request{5000}, a, ManagedPlace(0));
    AllocationPtr pinned = Alloc(Request{5000}, a, PinnedPlace(0));
    Mark(small, b);
    Mark(pinned, a);
    Mark(managed, b);
    large.reset();
    // Takes the idle chunk of a, then needs the idle memory of all streams.
    AllocationPtr taken = Alloc(Request{Mebibytes(20)}, b);
    AllocationPtr second = Alloc(Request{Mebibytes(20)}, a);
    taken.reset();
    second.reset();
    AllocationPtr most = Alloc(Request{Mebibytes(50)}, a);
    AllocationPtr impossible = Alloc(Request{Mebibytes(500)}, a);
    EXPECT_EQ(impossible, nullptr);
    small.reset();
    pinned.reset();
    most.reset();
    Try([&] { facade_->Release(kPlace); });
    AllocationPtr late = Alloc(Request{300}, b);
    Mark(late, a);
    Try([&] { facade_->StreamDestroyed(b); });
  }

  // Checks the remains after all blocks are freed.
  void Finish(const std::string& what, bool device_kept_it) {
    for (const Place place : facade_->places()) {
      const Stats stats = facade_->GetStats(place);
      EXPECT_GE(stats.allocations, met_[static_cast<std::size_t>(place.kind)])
          << what;
      EXPECT_EQ(stats.frees, stats.allocations) << what;
      EXPECT_EQ(stats.in_use_bytes, 0U) << what;
      facade_->Release(place);
      EXPECT_EQ(facade_->GetStats(place).reserved_bytes, 0U) << what;
    }
    facade_.reset();
    device().ClearFaults();
    EXPECT_EQ(platform_.use_count(), 1) << what;
    for (const Stream& stream : streams_) device().StreamDestroy(stream);
    if (device_kept_it) return;
    EXPECT_EQ(platform_->LeakReport(), "") << what;
  }

 private:
  void Try(const std::function<void()>& call) {
    try {
      call();
    } catch (const std::bad_alloc&) {
    } catch (const DeviceError&) {
    } catch (const std::invalid_argument&) {  // from Wrap
    }
  }

  AllocationPtr Alloc(const Request& request, Stream stream,
                      Place place = kPlace) {
    const Stats before = facade_->GetStats(place);
    AllocationPtr result;
    Try([&] { result = facade_->Alloc(place, request, stream); });
    const Stats after = facade_->GetStats(place);
    met_[static_cast<std::size_t>(place.kind)] += result != nullptr;
    EXPECT_EQ(after.live_allocations() - before.live_allocations(),
              result != nullptr);
    // If the fill of a block failed, the block was allocated and freed.
    if (facade_->options().alloc_fill_value == -1) {
      EXPECT_EQ(after.frees, before.frees);
    }
    if (result == nullptr) {
      EXPECT_EQ(after.in_use_bytes, before.in_use_bytes);
      EXPECT_EQ(after.requested_bytes, before.requested_bytes);
    }
    return result;
  }

  void Mark(const AllocationPtr& allocation, Stream stream) {
    if (allocation == nullptr) return;
    Try([&] { facade_->RecordStream(allocation, stream); });
  }

  std::shared_ptr<SimPlatform> platform_;
  std::unique_ptr<AllocatorFacade> facade_;
  Stream streams_[2];
  std::uint64_t met_[4] = {};  // by PlaceKind
};

class FacadeFaultsTest : public testing::TestWithParam<const char*> {};

TEST_P(FacadeFaultsTest, ASessionWithoutFaultsIsClean) {
  Session session(GetParam(), nullptr);
  session.Run();
  session.Finish("no fault", false);
}

TEST_P(FacadeFaultsTest, EveryCallMayFailOnce) {
  Session plain(GetParam(), nullptr);
  plain.Run();
  std::vector<std::uint64_t> counts;
  for (std::size_t i = 0; i < kDeviceCallCount; ++i) {
    counts.push_back(plain.device().CallCount(static_cast<DeviceCall>(i)));
  }
  plain.Finish("no fault", false);

  int sessions = 0;
  for (std::size_t i = 0; i < kDeviceCallCount; ++i) {
    FaultRule rule;
    rule.call = static_cast<DeviceCall>(i);
    if (rule.call == DeviceCall::kStreamCreate)
      continue;  // only the test itself makes this call
    for (rule.nth = 1; rule.nth <= counts[i]; ++rule.nth) {
      Session session(GetParam(), &rule);
      session.Run();
      session.Finish(std::string(DeviceCallName(rule.call)) + " number " +
                         std::to_string(rule.nth),
                     GivesBack(rule.call));
      ++sessions;
    }
  }
  EXPECT_GT(sessions, 10);
}

INSTANTIATE_TEST_SUITE_P(
    Options, FacadeFaultsTest,
    testing::Values("", "allocator_strategy=direct",
                    "allocator_strategy=cuda_malloc_async",
                    "alloc_fill_value=1,sync_after_alloc",
                    "gpu_memory_limit_mb=60,strata_check_streams",
                    "free_idle_chunk,auto_growth_chunk_rule=exact",
                    "free_when_no_cache_hit,strata_exact_peak",
                    "strata_guard,strata_guard_quarantine=30MiB"));

}  // namespace
}  // namespace strata
