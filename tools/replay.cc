#include "strata/tools/replay.h"

#include <array>
#include <chrono>
#include <memory>
#include <stdexcept>
#include <utility>
#include <vector>

#include "strata/allocation/error.h"
#include "strata/platform/call_trace.h"
#include "strata/platform/device_call.h"
#include "strata/platform/device_work.h"
#include "strata/platform/sim/sim_platform.h"
#include "strata/tools/block_checker.h"
#include "strata/tools/interrupt.h"
#include "strata/tools/peers/registry.h"
#include "strata/tools/replay_heap.h"

namespace strata {
namespace {

// A replay takes some 50 ms for so many.
constexpr std::size_t kInterruptEvents = std::size_t{1} << 20;

std::string Location(const Trace& trace, std::size_t event) {
  return trace.Where(event) + ": ";
}

void CheckStatus(Status status, const char* what) {
  if (status == Status::kSuccess) return;
  throw std::runtime_error(std::string("replay: ") + what +
                           " failed: " + StatusName(status));
}

// The streams of a trace on a device. Destroyed with the object, which the
// heap must outlive.
template <class Heap>
class TraceStreams {
 public:
  TraceStreams(const Trace& trace, Device& device, Heap& heap)
      : device_(device), heap_(heap) {
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
      heap_.StreamDestroyed(streams_[i]);
      // If it fails the leak report says so.
      device_.StreamDestroy(streams_[i]);
    }
  }

  const Stream& operator[](std::size_t index) const { return streams_[index]; }

 private:
  Device& device_;
  Heap& heap_;
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
template <class Heap, bool kIsChecked>
class Run {
 public:
  Run(const Trace& trace, SimPlatform& platform, Heap& heap)
      : trace_(trace),
        device_(platform.sim_device(0)),
        work_(*platform.work(0)),
        heap_(heap),
        streams_(trace, device_, heap),
        live_(trace.slots) {}
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;
  // What the trace leaves live goes before the streams.
  ~Run() {
    for (Block& block : live_) heap_.Drop(block);
  }

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
    result.failed_tries = failed_tries_;
    result.first_failed_try = first_failed_try_;
    AddCounts(before, DeviceCounts(device_), result);
    result.elapsed_ns = static_cast<std::uint64_t>(
        std::chrono::duration_cast<std::chrono::nanoseconds>(end - begin)
            .count());
    const std::uint64_t managed_bytes = device_.peak_managed_bytes();
    result.peak_reserved_bytes = device_.peak_used_bytes() + managed_bytes;
    result.has_managed_memory = managed_bytes != 0;
    return result;
  }

 private:
  using Block = typename Heap::Block;

  static bool IsOutOfMemory(const Failure& failure) {
    return failure.IsExhaustion() ||
           failure.reason == Failure::Reason::kTooLarge;
  }

  void PlayEvents() {
    event_ = Restore();
    const std::uint64_t* bytes = trace_.allocated_bytes.data() + event_;
    const std::size_t events = trace_.events.size();
    for (; event_ < events; ++event_) {
      if (event_ % kInterruptEvents == 0) CheckInterrupt();
      const TraceEvent event = trace_.events[event_];
      Block& block = live_[event.slot()];
      if (event.is_allocate()) {
        Allocate(block, *bytes++, event);
      } else if (event.is_free()) {
        Free(block);
      } else if (event.is_try()) {
        Try(block, *bytes++, event);
      } else {
        heap_.Release();
      }
      if (trace_.work_ns != 0) Work(event);
    }
  }

  // Returns how many events, all of them allocates, are done by that.
  std::size_t Restore() {
    std::vector<PeerSegment> segments;
    std::size_t blocks = 0;
    for (const Trace::RecordedSegment& recorded : trace_.recorded.segments) {
      PeerSegment& segment = segments.emplace_back();
      segment.bytes = recorded.bytes;
      segment.stream = streams_[recorded.stream];
      for (const auto& [offset, bytes] : recorded.blocks) {
        segment.blocks.push_back({offset, bytes});
      }
      blocks += recorded.blocks.size();
    }
    if (segments.empty() || !heap_.Restore(segments, live_)) return 0;
    if constexpr (kIsChecked) {
      for (std::size_t i = 0; i < blocks; ++i) {
        checker_.Allocated(Heap::View(live_[i]), trace_.allocated_bytes[i]);
      }
    }
    return blocks;
  }

  void Allocate(Block& block, std::uint64_t bytes, TraceEvent event) {
    heap_.Allocate(block, bytes, streams_[event.stream()]);
    if constexpr (kIsChecked) checker_.Allocated(Heap::View(block), bytes);
  }

  void Free(Block& block) {
    if constexpr (kIsChecked) checker_.Freeing(Heap::View(block));
    heap_.Free(block);
  }

  void Try(Block& block, std::uint64_t bytes, TraceEvent event) {
    try {
      Allocate(block, bytes, event);
    } catch (const BadAlloc& error) {
      if (!IsOutOfMemory(error.failure())) throw;
      if (failed_tries_++ == 0) first_failed_try_ = event_;
      return;
    }
    Free(block);
  }

  void Work(TraceEvent event) {
    const Stream& stream = streams_[event.stream()];
    if (event.is_allocate() || event.is_try()) {
      CheckStatus(work_.Enqueue(stream, nullptr, 0, trace_.work_ns, 0),
                  "submitting work");
    }
    const Status status = device_.StreamQuery(stream);
    if (status != Status::kNotReady) CheckStatus(status, "asking a stream");
  }

  const Trace& trace_;
  SimDevice& device_;
  DeviceWork& work_;
  Heap& heap_;
  TraceStreams<Heap> streams_;
  std::vector<Block> live_;  // by slot
  BlockChecker checker_;
  std::size_t event_ = 0;  // the one being played
  std::uint64_t failed_tries_ = 0;
  std::optional<std::size_t> first_failed_try_;
};

template <class Heap, bool kIsChecked>
ReplayResult ReplayWith(const Trace& trace, const Options& options) {
  const auto platform = std::make_shared<SimPlatform>(options.platform);
  const std::string& device_trace = options.platform.device_trace_path;
  if (!device_trace.empty()) TraceCalls(*platform, device_trace);
  ReplayResult result;
  {
    Heap heap(options, platform);
    result = Run<Heap, kIsChecked>(trace, *platform, heap).Play();
  }
  std::string leaks = platform->LeakReport();
  if (!leaks.empty()) {
    // It ends its last line, an error does not.
    leaks.erase(leaks.find_last_not_of('\n') + 1);
    throw std::runtime_error(trace.path + ": " + options.Strategy() +
                             " leaks: " + leaks);
  }
  return result;
}

template <bool kIsChecked>
ReplayResult ReplayOn(const Trace& trace, const Options& options) {
  return IsPeerName(options.allocator_strategy)
             ? ReplayWith<PeerReplayHeap, kIsChecked>(trace, options)
             : ReplayWith<FacadeReplayHeap, kIsChecked>(trace, options);
}

}  // namespace

ReplayResult Replay(const Trace& trace, const Options& options) {
  return ReplayOn</*kIsChecked=*/false>(trace, options);
}

ReplayResult CheckedReplay(const Trace& trace, const Options& options) {
  return ReplayOn</*kIsChecked=*/true>(trace, options);
}

}  // namespace strata
