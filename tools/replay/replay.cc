#include "strata/tools/replay/replay.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <set>
#include <stdexcept>
#include <vector>

#include "strata/allocation/error.h"
#include "strata/platform/calls/call_trace.h"
#include "strata/platform/device_work.h"
#include "strata/platform/sim/device/sim_platform.h"
#include "strata/tools/peers/registry.h"
#include "strata/tools/replay/block_checker.h"
#include "strata/tools/replay/replay_heap.h"
#include "strata/tools/terminal/interrupt.h"

namespace strata::tools {
namespace {

// A replay of this many events takes some 50 ms.
constexpr std::size_t kInterruptEvents = std::size_t{1} << 20;

std::string Location(const Trace& trace, std::size_t event) {
  // The frees at the end of a pass belong to the last event.
  return trace.Where(std::min(event, trace.events.size() - 1)) + ": ";
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
      // The leak report names a failure.
      device_.StreamDestroy(streams_[i]);
    }
  }

  const Stream& operator[](std::size_t index) const { return streams_[index]; }

 private:
  Device& device_;
  Heap& heap_;
  std::vector<Stream> streams_;
};

// One run on one platform.
template <class Heap, bool kIsChecked>
class Run {
 public:
  Run(const Trace& trace, const PassPlan& plan, SimPlatform& platform,
      Heap& heap)
      : trace_(trace),
        plan_(plan),
        device_(platform.sim_device(0)),
        work_(*platform.work(0)),
        heap_(heap),
        streams_(trace, device_, heap),
        live_(trace.slots),
        meter_(device_) {}
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;
  // Blocks that are live at the end of the trace are freed before the streams.
  ~Run() {
    for (Block& block : live_) heap_.Drop(block);
  }

  ReplayResult Play() {
    ReplayResult result;
    const DeviceCounts before(device_);
    const auto begin = std::chrono::steady_clock::now();
    try {
      PlayPasses();
    } catch (const BadAlloc& error) {
      if (!IsOutOfMemory(error.failure())) {
        throw std::runtime_error(Location(trace_, event_) + error.what());
      }
      result.failed_event = event_;
      result.failed_pass = pass_;
      result.failure = error.what();
    } catch (const std::runtime_error& error) {
      throw std::runtime_error(Location(trace_, event_) + error.what());
    }
    const auto end = std::chrono::steady_clock::now();
    result.failed_tries = failed_tries_.size();
    if (!failed_tries_.empty()) {
      result.first_failed_try = *failed_tries_.begin();
    }
    const DeviceCounts after(device_);
    result.device_calls = after.CallsSince(before);
    result.modelled_device_us =
        static_cast<double>(after.NsSince(before)) / 1000;
    result.elapsed_ns = static_cast<std::uint64_t>(
        std::chrono::duration_cast<std::chrono::nanoseconds>(end - begin)
            .count());
    const std::uint64_t managed_bytes = device_.peak_managed_bytes();
    result.peak_reserved_bytes = meter_.peak_reserved_bytes() + managed_bytes;
    result.has_managed_memory = managed_bytes != 0;
    result.passes_done = passes_done_;
    result.passes = meter_.TakeSamples();
    return result;
  }

 private:
  using Block = typename Heap::Block;

  static bool IsOutOfMemory(const Failure& failure) {
    return failure.IsExhaustion() ||
           failure.reason == Failure::Reason::kTooLarge;
  }

  void PlayPasses() {
    if (plan_.passes == 0) {
      PlayEvents(Restore());
      return;
    }
    for (; pass_ <= plan_.passes; ++pass_) {
      if (plan_.on_pass) plan_.on_pass(pass_);
      PlayEvents(pass_ == 1 ? Restore() : 0);
      FreeLive();
      meter_.EndPass(pass_);
      passes_done_ = pass_;
    }
  }

  // Plays the events from number `first` on.
  void PlayEvents(std::size_t first) {
    event_ = first;
    const std::uint64_t* bytes = trace_.allocated_bytes.data() + event_;
    const std::size_t events = trace_.events.size();
    for (; event_ < events; ++event_) {
      if (event_ % kInterruptEvents == 0) CheckInterrupt();
      const TraceEvent event = trace_.events[event_];
      Block& block = live_[event.slot()];
      if (event.is_allocate()) {
        Allocate(block, BytesOf(bytes++), event);
      } else if (event.is_free()) {
        Free(block);
      } else if (event.is_try()) {
        Try(block, BytesOf(bytes++), event);
      } else {
        heap_.Release();
      }
      if (trace_.work_ns != 0) Work(event);
    }
  }

  // The size of a request in this pass.
  std::uint64_t BytesOf(const std::uint64_t* recorded) const {
    if (plan_.jitter_ppm == 0) return *recorded;
    const auto request = recorded - trace_.allocated_bytes.data();
    return JitteredBytes(*recorded, plan_.jitter_ppm, pass_,
                         static_cast<std::uint64_t>(request));
  }

  void FreeLive() {
    for (Block& block : live_) {
      if (!Heap::IsEmpty(block)) Free(block);
    }
  }

  // Returns the number of events that this completes; all of them are
  // allocates.
  std::size_t Restore() {
    std::vector<peers::PeerSegment> segments;
    std::size_t blocks = 0;
    for (const Trace::RecordedSegment& recorded : trace_.recorded.segments) {
      peers::PeerSegment& segment = segments.emplace_back();
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
    const Stream& stream = streams_[event.stream()];
    if (plan_.passes == 0) {
      heap_.Allocate(block, bytes, stream);
    } else {
      const std::uint64_t before_ns = device_.modelled_ns();
      heap_.Allocate(block, bytes, stream);
      meter_.Served(device_.modelled_ns() - before_ns);
    }
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
      failed_tries_.insert(event_);
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
  const PassPlan& plan_;
  SimDevice& device_;
  DeviceWork& work_;
  Heap& heap_;
  TraceStreams<Heap> streams_;
  std::vector<Block> live_;  // by slot
  BlockChecker checker_;
  PassMeter meter_;
  std::uint64_t pass_ = 1;  // the current one
  std::uint64_t passes_done_ = 0;
  std::size_t event_ = 0;               // the current one
  std::set<std::size_t> failed_tries_;  // indices of events
};

template <class Heap, bool kIsChecked>
ReplayResult ReplayWith(const Trace& trace, const Options& options,
                        const PassPlan& plan) {
  const auto platform = std::make_shared<SimPlatform>(options.platform);
  const std::string& device_trace = options.platform.device_trace_path;
  if (!device_trace.empty()) TraceCalls(*platform, device_trace);
  ReplayResult result;
  {
    Heap heap(options, platform);
    result = Run<Heap, kIsChecked>(trace, plan, *platform, heap).Play();
  }
  std::string leaks = platform->LeakReport();
  if (!leaks.empty()) {
    // The report ends with a line end, an error does not.
    leaks.erase(leaks.find_last_not_of('\n') + 1);
    throw std::runtime_error(trace.path + ": " + options.Strategy() +
                             " leaks: " + leaks);
  }
  return result;
}

template <bool kIsChecked>
ReplayResult ReplayOn(const Trace& trace, const Options& options,
                      const PassPlan& plan) {
  return peers::IsPeerName(options.allocator_strategy)
             ? ReplayWith<PeerReplayHeap, kIsChecked>(trace, options, plan)
             : ReplayWith<FacadeReplayHeap, kIsChecked>(trace, options, plan);
}

}  // namespace

const PassSample* ReplayResult::SampleOf(std::uint64_t pass) const {
  const auto found = std::find_if(
      passes.begin(), passes.end(),
      [&](const PassSample& sample) { return sample.pass == pass; });
  return found == passes.end() ? nullptr : &*found;
}

ReplayResult Replay(const Trace& trace, const Options& options,
                    const PassPlan& plan) {
  return ReplayOn</*kIsChecked=*/false>(trace, options, plan);
}

ReplayResult CheckedReplay(const Trace& trace, const Options& options,
                           const PassPlan& plan) {
  return ReplayOn</*kIsChecked=*/true>(trace, options, plan);
}

}  // namespace strata::tools
