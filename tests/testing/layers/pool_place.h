#ifndef STRATA_TESTS_TESTING_LAYERS_POOL_PLACE_H_
#define STRATA_TESTS_TESTING_LAYERS_POOL_PLACE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "strata/allocation/chunks/chunk_pool.h"
#include "strata/allocation/decorators/decorator_options.h"
#include "strata/allocation/reclaim/reclaimer.h"
#include "strata/allocation/streams/deferred_frees.h"
#include "strata/allocation/streams/timeline_table.h"
#include "strata/base/size.h"
#include "strata/platform/sim/device/sim_device.h"
#include "strata/platform/sim/device/sim_platform.h"

namespace strata {

// A chain without decorators.
inline DecoratorOptions NoDecorators() {
  DecoratorOptions options;
  options.stat = options.stream_safe = options.aligned = false;
  options.cuda_graph = false;
  options.retry_time_ms = 0;
  return options;
}

// A chain whose only decorator is `name` of DecoratorNames(), configured to
// refuse nothing. Trace, events and log write to `path`.
DecoratorOptions OnlyDecorator(const std::string& name,
                               const std::string& path);

// A file name that no other process uses.
std::string TemporaryPath(const std::string& name);

struct PoolPlaceOptions {
  PlaceKind kind = PlaceKind::kDevice;
  std::uint64_t memory_bytes = Mebibytes(256);  // of the simulated device
  std::size_t limit_bytes = 0;
  std::string data = "phantom";     // as PlatformOptions::sim_data
  std::string progress = "inline";  // as PlatformOptions::sim_progress
  bool cross_stream_wait = false;
  DecoratorOptions decorators = NoDecorators();
};

// The part of a place below its strategies, built as a facade builds it: a
// simulated device, the system allocator, the ladder and the pool.
class PoolPlace {
 public:
  explicit PoolPlace(const PoolPlaceOptions& options = PoolPlaceOptions());

  const std::shared_ptr<SimPlatform>& platform() const { return platform_; }
  SimDevice& device() const { return platform_->sim_device(0); }
  const std::shared_ptr<Reclaimer>& reclaimer() const { return reclaimer_; }
  const std::shared_ptr<Allocator>& system() const { return system_; }
  const std::shared_ptr<ChunkPool>& pool() const { return pool_; }

  Stream NewStream() const;
  // The state that its streams share, and the frees that wait for them.
  const std::shared_ptr<TimelineTable>& timelines() const { return timelines_; }
  const std::shared_ptr<DeferredFrees>& frees() const { return frees_; }
  // For a new stream; without a stream if the place is on the host.
  std::shared_ptr<ChainStream> NewChainStream() const;
  // Number of calls of all kinds that reached the device.
  std::uint64_t DeviceCalls() const;

 private:
  PlaceKind kind_;
  std::shared_ptr<SimPlatform> platform_;
  std::shared_ptr<Reclaimer> reclaimer_;
  std::shared_ptr<Allocator> system_;
  std::shared_ptr<ChunkPool> pool_;
  std::shared_ptr<TimelineTable> timelines_;
  std::shared_ptr<DeferredFrees> frees_;
};

// A rule that fails the nth `call`.
FaultRule FailNth(DeviceCall call, std::uint64_t nth);
// A rule that fails every `call`.
FaultRule FailAll(DeviceCall call);

// Number of allocations that were not returned to `device`.
inline std::uint64_t LeakedAllocations(const SimDevice& device) {
  const SimLeaks leaks = device.Leaks();
  return leaks.allocations + leaks.pool_blocks + leaks.pinned_ranges +
         leaks.managed_ranges;
}

// Objects that were not returned to `device`, without driver pools: a strategy
// keeps empty driver pools.
inline SimLeaks LeaksButPools(const SimDevice& device) {
  SimLeaks leaks = device.Leaks();
  leaks.pools = 0;
  return leaks;
}

}  // namespace strata

#endif  // STRATA_TESTS_TESTING_LAYERS_POOL_PLACE_H_
