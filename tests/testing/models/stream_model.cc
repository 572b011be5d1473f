#include "strata/tests/testing/models/stream_model.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "strata/allocation/error.h"
#include "strata/facade/options.h"
#include "strata/platform/device_work.h"
#include "strata/tests/testing/devices/thread_capture_mode.h"
#include "strata/tests/testing/models/facade_model.h"

namespace strata {
namespace {

constexpr Place kModelPlace = DevicePlace(0);
// More than the blocks, pools and streams of a program need.
constexpr std::size_t kModelEvents = 256;
constexpr std::size_t kBetweenChecks = 16;

}  // namespace

StreamModel::StreamModel(const StreamModelOptions& options)
    : options_(options), choices_(options.seed) {
  PlatformOptions platform;
  platform.platform = "sim";
  platform.sim_memory_bytes = options.device_bytes;
  platform.sim_progress = options.progress;
  platform.sim_seed = options.seed;
  platform.sim_check_hazards = "report";
  platform_ = std::make_shared<SimPlatform>(platform);
  platform_->hazard_monitor()->SetHandler(
      [this](const check::HazardReport& report) {
        hazards_ += ToString(report);
      });
  for (Stream& stream : streams_) {
    Must("StreamCreate",
         [&] { return device().StreamCreate(&stream, kStreamNonBlocking); });
  }
  events_.resize(kModelEvents);
  for (Event& event : events_) {
    Must("EventCreate",
         [&] { return device().EventCreate(&event, kEventDisableTiming); });
  }
  free_events_ = events_;
  facade_ = std::make_unique<AllocatorFacade>(Options::Parse(options.facade),
                                              platform_);
  platform_->sim_device(0).SetCallObserver([this](const CallRecord& call) {
    counts_.failed_calls +=
        call.status != Status::kSuccess && call.status != Status::kNotReady;
  });
}

StreamModel::~StreamModel() {
  platform_->sim_device(0).ClearFaults();
  platform_->sim_device(0).SetCallObserver(nullptr);
  platform_->hazard_monitor()->SetHandler([](const check::HazardReport&) {});
}

std::string StreamModel::Where() const {
  return "seed " + std::to_string(options_.seed) + ", operation " +
         std::to_string(step_) + ", options '" + options_.facade + "'";
}

bool StreamModel::AnyCaptures() const {
  return std::any_of(capture_of_.begin(), capture_of_.end(),
                     [](const auto& capture) { return capture != nullptr; });
}

void StreamModel::Must(const char* name, const std::function<Status()>& call) {
  const ThreadCaptureMode relaxed(&device(), CaptureMode::kRelaxed);
  Status status = call();
  // Faults end, and only a fault makes a call fail.
  for (int tries = 0; status != Status::kSuccess && tries < 8; ++tries) {
    EXPECT_TRUE(options_.has_faults)
        << name << ": " << ToString(status) << "; " << Where();
    status = call();
  }
  EXPECT_EQ(status, Status::kSuccess) << name << "; " << Where();
}

Event StreamModel::TakeEvent() {
  const Event event = free_events_.back();
  free_events_.pop_back();
  return event;
}

void StreamModel::Record(Event event, std::size_t stream) {
  Must("EventRecord",
       [&] { return device().EventRecord(event, streams_[stream], 0); });
}

void StreamModel::WaitFor(Event event, std::size_t stream) {
  Must("StreamWaitEvent",
       [&] { return device().StreamWaitEvent(streams_[stream], event, 0); });
}

void StreamModel::Order(std::size_t earlier, std::size_t later) {
  const Event event = TakeEvent();
  Record(event, earlier);
  WaitFor(event, later);
  GiveEvent(event);
}

void StreamModel::Allocate() {
  if (live_.size() >= kMaxLive) return;
  const std::size_t stream = Below(kStreams);
  constexpr std::size_t kSteps = 4096;
  const double exponent = static_cast<double>(Below(kSteps)) / kSteps;
  const double largest = static_cast<double>(options_.device_bytes) / 12;
  Request request;
  request.bytes =
      static_cast<std::size_t>(std::exp2(exponent * std::log2(largest))) + 8;
  if (OneIn(30)) request.flags |= kLongLived;
  if (OneIn(30)) request.alignment = std::size_t{1} << Below(13);
  Failure failure;
  Live live;
  live.allocation =
      facade_->TryAlloc(kModelPlace, request, streams_[stream], failure);
  if (live.allocation == nullptr) {
    NoteRefusal(request.bytes, failure);
    return;
  }
  ++counts_.allocations;
  requested_bytes_ += request.bytes;
  EXPECT_GE(live.allocation->size(), request.bytes) << Where();
  EXPECT_TRUE(ranges_.Add(*live.allocation)) << "handed out twice; " << Where();
  live.owner = stream;
  live.capture = capture_of_[stream];
  live.ordered = Bit(stream);
  live.ready = TakeEvent();
  Record(live.ready, stream);
  live_.push_back(std::move(live));
}

void StreamModel::NoteRefusal(std::size_t bytes, const Failure& failure) {
  ++counts_.refusals;
  // During captures, no further search is allowed.
  if (options_.has_faults || AnyCaptures()) return;
  EXPECT_TRUE(failure.IsExhaustion()) << failure.ToString() << "; " << Where();
  const bool pools_have_memory =
      !pools_.empty() || !graphs_.empty() || has_dropped_ ||
      std::any_of(live_.begin(), live_.end(),
                  [](const Live& live) { return live.capture != nullptr; });
  if (pools_have_memory) return;
  // With fewer bytes in use, a large enough hole exists in any layout.
  EXPECT_GT(ranges_.bytes() + bytes + live_.size() * sim::kFrameBytes,
            options_.device_bytes / 4)
      << failure.ToString() << "; " << Where();
}

bool StreamModel::MayUse(const Live& live, std::size_t stream) const {
  const std::shared_ptr<Capture>& in = capture_of_[stream];
  if (live.capture != nullptr && live.capture->guard != nullptr) {
    // Only for a stream that takes part in the capture, or joins it.
    return in == nullptr || in == live.capture;
  }
  return true;
}

void StreamModel::Use() {
  if (live_.empty()) return;
  Live& live = AnyLive();
  const bool by_owner = live.owner != kNone && !OneIn(3);
  const std::size_t stream = by_owner ? live.owner : Below(kStreams);
  if (MayUse(live, stream)) UseIn(live, stream);
}

void StreamModel::UseIn(Live& live, std::size_t stream) {
  const bool joins = live.capture != nullptr && live.capture->guard != nullptr;
  if (joins) capture_of_[stream] = live.capture;
  const std::shared_ptr<Capture> in = capture_of_[stream];
  const bool is_input = in != nullptr && !joins;
  if (!is_input && (live.ordered & Bit(stream)) == 0) {
    WaitFor(live.ready, stream);
    live.ordered |= Bit(stream);
  }
  const WorkRange range{reinterpret_cast<DevicePtr>(live.allocation->data()),
                        live.allocation->size() / 8 * 8, OneIn(2)};
  Must("Enqueue", [&] {
    return platform_->work(0)->Enqueue(streams_[stream], &range, 1, 1000, 0);
  });
  if (!is_input) {
    if (stream != live.owner) live.needs |= Bit(stream);
    NoteUse(live, stream);
    return;
  }
  const bool is_known =
      std::find(live.users.begin(), live.users.end(), in) != live.users.end();
  if (!is_known) live.users.push_back(in);
}

void StreamModel::NoteUse(const Live& live, std::size_t stream) {
  if (live.capture == nullptr || stream == kNone || IsCapturing(stream)) return;
  Pool& pool = *live.capture->pool;
  if (pool.is_over) return;
  Record(pool.used[stream], stream);
  pool.users |= Bit(stream);
}

std::shared_ptr<StreamModel::Pool> StreamModel::NewPool() {
  auto pool = std::make_shared<Pool>();
  pool->launched = TakeEvent();
  for (Event& event : pool->used) event = TakeEvent();
  return pool;
}

void StreamModel::GiveEvents(Pool& pool) {
  pool.is_over = true;
  GiveEvent(pool.launched);
  for (const Event event : pool.used) GiveEvent(event);
}

void StreamModel::Name() {
  if (live_.empty()) return;
  Live& live = AnyLive();
  std::size_t stream = Below(kStreams);
  while (live.needs != 0 && (live.needs & Bit(stream)) == 0) {
    stream = (stream + 1) % kStreams;
  }
  NameFor(live, stream);
}

void StreamModel::NameFor(Live& live, std::size_t stream) {
  if (stream == live.owner) return;
  ++counts_.marks;
  const bool may_wait =
      !IsCapturing(stream) && live.owner != kNone && !IsCapturing(live.owner);
  const std::size_t way = Below(8);
  if (way == 0 && may_wait) {
    // The program orders the use itself.
    Order(stream, live.owner);
    facade_->EraseStream(*live.allocation, streams_[stream]);
  } else if (way <= 2 && !IsCapturing(stream)) {
    const Event event = TakeEvent();
    Record(event, stream);
    EXPECT_TRUE(facade_->RecordUse(*live.allocation, streams_[stream], event))
        << Where();
    GiveEvent(event);
  } else {
    EXPECT_TRUE(facade_->RecordStream(live.allocation, streams_[stream]))
        << Where();
  }
  live.needs &= ~Bit(stream);
  NoteUse(live, stream);
}

void StreamModel::Free() {
  if (live_.empty()) return;
  const std::size_t index = Below(live_.size());
  if (live_[index].users.empty()) FreeAt(index);
}

void StreamModel::FreeAt(std::size_t index) {
  std::swap(live_[index], live_.back());
  Live live = std::move(live_.back());
  live_.pop_back();
  EXPECT_TRUE(ranges_.Remove(*live.allocation)) << Where();
  requested_bytes_ -= live.allocation->requested_bytes();
  // The free itself may name the last of the streams.
  for (std::size_t s = 0; s < kStreams; ++s) {
    if ((live.needs & Bit(s)) == 0) continue;
    if (live.needs == Bit(s) && OneIn(2)) {
      NoteUse(live, s);
      facade_->GetAllocator(kModelPlace)
          .Free(std::move(live.allocation), streams_[s]);
      break;
    }
    NameFor(live, s);
  }
  NoteUse(live, live.owner);
  GiveEvent(live.ready);
}

void StreamModel::Advance() {
  const std::size_t stream = Below(kStreams);
  for (std::size_t n = Below(6); n != 0; --n) {
    platform_->sim_device(0).Step(streams_[stream]);
  }
}

void StreamModel::Wait() {
  const std::size_t stream = Below(kStreams);
  if (!AnyCaptures() && OneIn(2)) {
    Must("Synchronize", [&] { return device().Synchronize(); });
    has_dropped_ = false;
    return;
  }
  if (IsCapturing(stream)) return;
  Must("StreamSynchronize",
       [&] { return device().StreamSynchronize(streams_[stream]); });
}

void StreamModel::ReplaceStream() {
  const std::size_t stream = Below(kStreams);
  if (AnyCaptures()) return;
  for (const auto& graph : graphs_) {
    if (graph->origin == stream) return;
  }
  for (Live& live : live_) {
    if ((live.needs & Bit(stream)) != 0) {
      EXPECT_TRUE(facade_->RecordStream(live.allocation, streams_[stream]))
          << Where();
    }
  }
  const Event last = TakeEvent();
  Record(last, stream);
  facade_->StreamDestroyed(streams_[stream]);
  Must("StreamDestroy",
       [&] { return device().StreamDestroy(streams_[stream]); });
  Must("StreamCreate", [&] {
    return device().StreamCreate(&streams_[stream], kStreamNonBlocking);
  });
  // The events of pools cover the old event too.
  WaitFor(last, stream);
  GiveEvent(last);
  for (Live& live : live_) {
    live.needs &= ~Bit(stream);
    live.ordered &= ~Bit(stream);
    if (live.owner == stream) live.owner = kNone;
  }
}

void StreamModel::Release() {
  if (OneIn(2)) {
    facade_->Release(kModelPlace);
  } else {
    facade_->Release(kModelPlace, streams_[Below(kStreams)]);
  }
}

void StreamModel::AddFault() {
  if (!options_.has_faults) return;
  const std::vector<DeviceCall> calls = HarmlessFaults();
  FaultRule rule;
  rule.call = calls[Below(calls.size())];
  rule.nth = 1 + Below(3);
  rule.count = 1 + Below(2);
  platform_->sim_device(0).AddFault(rule);
}

void StreamModel::Step() {
  ++step_;
  const std::size_t choice = Below(1000);
  if (choice < 280) {
    Allocate();
  } else if (choice < 480) {
    Use();
  } else if (choice < 560) {
    Name();
  } else if (choice < 800) {
    Free();
  } else if (choice < 900) {
    Advance();
  } else if (choice < 920) {
    Wait();
  } else if (choice < 935) {
    Begin();
  } else if (choice < 955) {
    End();
  } else if (choice < 970) {
    Relaunch();
  } else if (choice < 982) {
    DropGraph();
  } else if (choice < 986) {
    Release();
  } else if (choice < 990) {
    ReplaceStream();
  } else {
    AddFault();
  }
  if (step_ % kBetweenChecks == 0) Check();
}

void StreamModel::Check() {
  EXPECT_EQ(hazards_, "") << Where();
  const Stats stats = facade_->GetStats(kModelPlace);
  EXPECT_EQ(stats.live_allocations(), live_.size()) << Where();
  EXPECT_EQ(stats.requested_bytes, requested_bytes_) << Where();
  EXPECT_GE(stats.in_use_bytes, requested_bytes_) << Where();
  EXPECT_GE(stats.reserved_bytes, stats.in_use_bytes) << Where();
  EXPECT_LE(stats.reserved_bytes, options_.device_bytes) << Where();
}

void StreamModel::Finish() {
  platform_->sim_device(0).ClearFaults();
  while (AnyCaptures()) End();
  while (!graphs_.empty()) Drop(graphs_.size() - 1);
  while (!pools_.empty()) {
    facade_->RemoveMemoryPoolOfCUDAGraph(pools_.back()->id);
    GiveEvents(*pools_.back());
    pools_.pop_back();
  }
  while (!live_.empty()) FreeAt(live_.size() - 1);
  Check();
  // A launch keeps its pool alive. The device releases it at the next call
  // after the launch.
  platform_->sim_device(0).StepAll();
  std::size_t free_bytes = 0;
  std::size_t total_bytes = 0;
  Must("MemGetInfo",
       [&] { return device().MemGetInfo(&free_bytes, &total_bytes); });
  facade_->Release(kModelPlace);
  EXPECT_EQ(facade_->GetStats(kModelPlace).reserved_bytes, 0U) << Where();
  for (const Stream& stream : streams_) {
    EXPECT_NE(facade_->Alloc(kModelPlace, options_.device_bytes / 2, stream),
              nullptr)
        << Where();
  }
  facade_.reset();
  for (const Stream& stream : streams_) {
    Must("StreamDestroy", [&] { return device().StreamDestroy(stream); });
  }
  for (const Event event : events_) {
    Must("EventDestroy", [&] { return device().EventDestroy(event); });
  }
  EXPECT_EQ(platform_->LeakReport(), "") << Where();
  EXPECT_EQ(hazards_, "") << Where();
}

}  // namespace strata
