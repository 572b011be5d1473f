#include "strata/tests/testing/layers/pool_place.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "strata/allocation/decorators/registered/decorator_factories.h"
#include "strata/allocation/decorators/registry.h"
#include "strata/allocation/system/device_allocator.h"
#include "strata/allocation/system/host_allocator.h"

// Requests that no machine can meet are part of the contract: the sanitizers
// must return null for them, as the system does.
// NOLINTBEGIN(bugprone-reserved-identifier)
extern "C" const char* __asan_default_options();
extern "C" const char* __asan_default_options() {
  return "allocator_may_return_null=1";
}
extern "C" const char* __tsan_default_options();
extern "C" const char* __tsan_default_options() {
  return "allocator_may_return_null=1";
}
// The C library guards its time zone with a lock that the sanitizer cannot see.
// glog takes this lock in every thread that logs.
extern "C" const char* __tsan_default_suppressions();
extern "C" const char* __tsan_default_suppressions() {
  return "race:tzset_internal\n";
}
// NOLINTEND(bugprone-reserved-identifier)

namespace strata {
namespace {

std::shared_ptr<SimPlatform> MakePlatformFor(const PoolPlaceOptions& options) {
  PlatformOptions platform;
  platform.platform = "sim";
  platform.sim_devices = 1;
  platform.sim_memory_bytes = options.memory_bytes;
  platform.sim_data = options.data;
  platform.sim_progress = options.progress;
  return std::make_shared<SimPlatform>(platform);
}

std::shared_ptr<Allocator> MakeSystem(
    PlaceKind kind, const std::shared_ptr<SimPlatform>& platform) {
  switch (kind) {
    case PlaceKind::kDevice:
      return std::make_shared<DeviceAllocator>(platform, 0);
    case PlaceKind::kPinned:
      return std::make_shared<PinnedAllocator>(platform, 0);
    case PlaceKind::kManaged:
      return std::make_shared<ManagedAllocator>(platform, 0);
    case PlaceKind::kHost:
      break;
  }
  return std::make_shared<HostAllocator>();
}

}  // namespace

DecoratorOptions OnlyDecorator(const std::string& name,
                               const std::string& path) {
  DecoratorOptions options = NoDecorators();
  options.stat = name == "stat";
  options.aligned = name == "aligned";
  options.stream_safe = name == "stream_safe";
  options.cuda_graph = name == "cuda_graph";
  options.guard = name == "guard";
  options.observe_blocks = name == "observe";
  if (name == "retry") options.retry_time_ms = 10000;
  if (name == "limit") options.in_use_limit_bytes = Gibibytes(64);
  if (name == "trace") options.trace_path = path;
  if (name == "events") options.trace_events_path = path;
  if (name == "log") options.allocation_log_path = path;
  if (name == "fault") options.fault = "nth=1000000000";
  if (DecoratorFactories::Instance().Has(name)) options.registered = name;
  return options;
}

std::string TemporaryPath(const std::string& name) {
  return ::testing::TempDir() + "strata_" + std::to_string(getpid()) + "_" +
         name;
}

PoolPlace::PoolPlace(const PoolPlaceOptions& options)
    : kind_(options.kind),
      platform_(MakePlatformFor(options)),
      reclaimer_(std::make_shared<Reclaimer>()),
      system_(MakeSystem(options.kind, platform_)),
      pool_(std::make_shared<ChunkPool>(
          DecorateSystem(system_, options.decorators, ChainContext()),
          options.limit_bytes, reclaimer_)),
      timelines_(std::make_shared<TimelineTable>(platform_)),
      frees_(std::make_shared<DeferredFrees>(timelines_, reclaimer_,
                                             options.cross_stream_wait)) {}

Stream PoolPlace::NewStream() const {
  Stream stream;
  EXPECT_EQ(device().StreamCreate(&stream, kStreamNonBlocking),
            Status::kSuccess);
  return stream;
}

std::shared_ptr<ChainStream> PoolPlace::NewChainStream() const {
  const bool on_host = kind_ == PlaceKind::kHost;
  if (on_host) return std::make_shared<ChainStream>();
  const Stream stream = NewStream();
  return std::make_shared<ChainStream>(device(), stream,
                                       timelines_->Of(stream));
}

std::uint64_t PoolPlace::DeviceCalls() const {
  std::uint64_t calls = 0;
  for (std::size_t i = 0; i < kDeviceCallCount; ++i) {
    calls += device().CallCount(static_cast<DeviceCall>(i));
  }
  return calls;
}

FaultRule FailNth(DeviceCall call, std::uint64_t nth) {
  FaultRule rule;
  rule.call = call;
  rule.nth = nth;
  return rule;
}

FaultRule FailAll(DeviceCall call) { return FailNth(call, 0); }

}  // namespace strata
