#include "strata/tools/replay.h"

#include <array>
#include <chrono>
#include <memory>
#include <stdexcept>
#include <utility>
#include <vector>

#include "strata/allocation/error.h"
#include "strata/facade/allocator_facade.h"
#include "strata/platform/device_call.h"
#include "strata/platform/sim/sim_platform.h"
#include "strata/tools/block_checker.h"

namespace strata {
namespace {

struct NoChecker {
  void Allocated(const Allocation& /*allocation*/, std::size_t /*bytes*/) {}
  void Freeing(const Allocation& /*allocation*/) {}
};

std::string Location(const Trace& trace, std::size_t event) {
  return trace.Where(event) + ": ";
}

void CheckStatus(Status status, const char* what) {
  if (status == Status::kSuccess) return;
  throw std::runtime_error(std::string("replay: ") + what +
                           " failed: " + StatusName(status));
}

// The streams of a trace on a device. Destroyed with the object, which the
// facade must outlive.
class TraceStreams {
 public:
  TraceStreams(const Trace& trace, Device& device, AllocatorFacade& facade)
      : device_(device), facade_(facade) {
    streams_.push_back(device.LegacyStream());
    while (streams_.size() < trace.streams.size()) {
      Stream stream;
      CheckStatus(device.StreamCreate(&stream, kStreamNonBlocking),
                  "creating a stream");
      streams_.push_back(stream);
    }
  }
  TraceStreams(const TraceStreams&) = delete;
  TraceStreams& operator=(const TraceStreams&) = delete;
  ~TraceStreams() {
    for (std::size_t i = 1; i < streams_.size(); ++i) {
      facade_.StreamDestroyed(streams_[i]);
      // If it fails the leak report says so.
      device_.StreamDestroy(streams_[i]);
    }
  }

  const Stream& operator[](std::size_t index) const { return streams_[index]; }

 private:
  Device& device_;
  AllocatorFacade& facade_;
  std::vector<Stream> streams_;
};

// The counts of a device at one moment.
struct DeviceCounts {
  explicit DeviceCounts(const SimDevice& device)
      : modelled_ns(device.modelled_ns()) {
    for (std::size_t i = 0; i < kDeviceCallCount; ++i) {
      calls[i] = device.CallCount(static_cast<DeviceCall>(i));
    }
  }

  std::array<std::uint64_t, kDeviceCallCount> calls;
  std::uint64_t modelled_ns;
};

// Fills in what the device counted between the two moments.
void AddCounts(const DeviceCounts& before, const DeviceCounts& after,
               ReplayResult& result) {
  for (std::size_t i = 0; i < kDeviceCallCount; ++i) {
    const std::uint64_t count = after.calls[i] - before.calls[i];
    if (count == 0) continue;
    result.device_calls[DeviceCallName(static_cast<DeviceCall>(i))] = count;
  }
  result.modelled_device_us =
      static_cast<double>(after.modelled_ns - before.modelled_ns) / 1000;
}

// One run on one platform.
template <class Checker>
class Run {
 public:
  Run(const Trace& trace, SimDevice& device, AllocatorFacade& facade)
      : trace_(trace),
        device_(device),
        facade_(facade),
        streams_(trace, device, facade),
        live_(trace.slots) {}

  ReplayResult Play() {
    ReplayResult result;
    const DeviceCounts before(device_);
    const auto begin = std::chrono::steady_clock::now();
    try {
      PlayEvents();
    } catch (const BadAlloc& error) {
      if (!IsOutOfMemory(error.failure())) {
        throw std::runtime_error(Location(trace_, event_) + error.what());
      }
      result.failed_event = event_;
      result.failure = error.what();
    } catch (const std::runtime_error& error) {
      throw std::runtime_error(Location(trace_, event_) + error.what());
    }
    const auto end = std::chrono::steady_clock::now();
    AddCounts(before, DeviceCounts(device_), result);
    result.elapsed_ns = static_cast<std::uint64_t>(
        std::chrono::duration_cast<std::chrono::nanoseconds>(end - begin)
            .count());
    result.peak_reserved_bytes = device_.peak_used_bytes();
    return result;
  }

 private:
  static bool IsOutOfMemory(const Failure& failure) {
    return failure.IsExhaustion() ||
           failure.reason == Failure::Reason::kTooLarge;
  }

  void PlayEvents() {
    const std::uint64_t* bytes = trace_.allocated_bytes.data();
    const std::size_t events = trace_.events.size();
    for (event_ = 0; event_ < events; ++event_) {
      const TraceEvent event = trace_.events[event_];
      AllocationPtr& block = live_[event.slot()];
      if (event.is_allocate()) {
        block = facade_.Alloc(DevicePlace(0), *bytes, streams_[event.stream()]);
        checker_.Allocated(*block, *bytes);
        ++bytes;
      } else {
        checker_.Freeing(*block);
        block.reset();
      }
    }
  }

  const Trace& trace_;
  SimDevice& device_;
  AllocatorFacade& facade_;
  TraceStreams streams_;
  // By slot; freed before the streams go.
  std::vector<AllocationPtr> live_;
  Checker checker_;
  std::size_t event_ = 0;  // the one being played
};

template <class Checker>
ReplayResult ReplayWith(const Trace& trace, const Options& options) {
  const auto platform = std::make_shared<SimPlatform>(options.platform);
  ReplayResult result;
  {
    AllocatorFacade facade(options, platform);
    result = Run<Checker>(trace, platform->sim_device(0), facade).Play();
  }
  const std::string leaks = platform->LeakReport();
  if (!leaks.empty()) {
    throw std::runtime_error(trace.path + ": " + options.Strategy() +
                             " leaks: " + leaks);
  }
  return result;
}

}  // namespace

ReplayResult Replay(const Trace& trace, const Options& options) {
  return ReplayWith<NoChecker>(trace, options);
}

ReplayResult CheckedReplay(const Trace& trace, const Options& options) {
  return ReplayWith<BlockChecker>(trace, options);
}

}  // namespace strata
