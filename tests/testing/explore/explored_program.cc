#include "strata/tests/testing/explore/explored_program.h"

#include <algorithm>
#include <exception>
#include <utility>

#include "strata/allocation/error.h"
#include "strata/facade/options.h"
#include "strata/platform/device_work.h"
#include "strata/tests/testing/devices/thread_capture_mode.h"

namespace strata {
namespace {

// More than any program records. A capture may forbid the creation of events.
constexpr std::size_t kEvents = 32;

const char* NameOf(StepKind kind) {
  constexpr std::array<const char*, 8> kNames = {
      "alloc", "use", "mark", "free", "complete", "begin", "end", "launch"};
  return kNames[static_cast<std::size_t>(kind)];
}

}  // namespace

std::string ToString(const ExploredStep& step) {
  return std::string(NameOf(step.kind)) + " " + std::to_string(step.index) +
         " in stream " + std::to_string(step.stream);
}

ExploredProgram::ExploredProgram(const ExploreOptions& options)
    : options_(options) {
  google::AddLogSink(this);
  PlatformOptions platform;
  platform.platform = "sim";
  platform.sim_memory_bytes = options.device_bytes;
  platform.sim_data = options.data;
  platform.sim_progress = "manual";
  platform.sim_check_hazards = "report";
  platform_ = std::make_shared<SimPlatform>(platform);
  platform_->hazard_monitor()->SetHandler(
      [this](const check::HazardReport& report) {
        findings_ += check::ToString(report) + "\n";
      });
  std::vector<Stream> streams(options.streams);
  for (Stream& stream : streams) {
    Expect(device().StreamCreate(&stream, kStreamNonBlocking), "StreamCreate");
  }
  events_.resize(kEvents);
  for (Event& event : events_) {
    Expect(device().EventCreate(&event, kEventDisableTiming), "EventCreate");
  }
  order_ = std::make_unique<ExploredOrder>(platform_.get(), streams);
  facade_ = std::make_unique<AllocatorFacade>(Options::Parse(options.facade),
                                              platform_);
  capture_of_.fill(kNone);
  if (options.shares_pool) {
    pool_ = facade_->PrepareMemoryPoolForCUDAGraph(0);
    facade_->CaptureEnded(pool_);
  }
}

ExploredProgram::~ExploredProgram() {
  if (facade_ != nullptr) Close();
  google::RemoveLogSink(this);
}

void ExploredProgram::send(google::LogSeverity severity,
                           const char* /*full_filename*/,
                           const char* base_filename, int line,
                           const google::LogMessageTime& /*time*/,
                           const char* message, std::size_t message_bytes) {
  if (severity < google::GLOG_ERROR) return;
  findings_ += base_filename;
  findings_ += ":" + std::to_string(line) + ": ";
  findings_.append(message, message_bytes);
  findings_ += "\n";
}

void ExploredProgram::Expect(bool holds, const char* what) {
  if (!holds) findings_ += std::string(what) + "\n";
}

void ExploredProgram::Expect(Status status, const char* call) {
  if (status == Status::kSuccess) return;
  findings_ += std::string(call) + ": " + strata::ToString(status) + "\n";
}

void ExploredProgram::Do(const ExploredStep& step) {
  used_ |= Bit(step.stream);
  switch (step.kind) {
    case StepKind::kAlloc:
      Alloc(step.stream);
      break;
    case StepKind::kUse:
      Use(step.index, step.stream);
      break;
    case StepKind::kMark:
      Mark(step.index, step.stream);
      break;
    case StepKind::kFree:
      Free(step.index);
      break;
    case StepKind::kComplete:
      Complete(step.stream);
      break;
    case StepKind::kBegin:
      Begin(step.stream);
      break;
    case StepKind::kEnd:
      End(step.index);
      break;
    case StepKind::kLaunch:
      Launch(step.index);
      break;
  }
  CheckContents(false);
}

void ExploredProgram::Record(Event event, std::size_t index) {
  Expect(device().EventRecord(event, stream(index), 0), "EventRecord");
}

Event ExploredProgram::RecordNew(std::size_t index) {
  const Event event = events_.at(next_event_++);
  Record(event, index);
  return event;
}

void ExploredProgram::WaitFor(Event event, std::size_t index) {
  Expect(device().StreamWaitEvent(stream(index), event, 0), "StreamWaitEvent");
}

void ExploredProgram::WaitForReady(Life& life, std::size_t stream) {
  if ((life.ordered & Bit(stream)) != 0) return;
  WaitFor(life.ready, stream);
  life.ordered |= Bit(stream);
}

void ExploredProgram::Note(std::size_t capture, StepKind kind,
                           std::size_t stream, std::uintptr_t address) {
  std::string& history = captures_[capture].history;
  history += static_cast<char>(kind);
  history += static_cast<char>(stream);
  history.append(reinterpret_cast<const char*>(&address), sizeof address);
}

void ExploredProgram::Alloc(std::size_t index) {
  Failure failure;
  AllocationPtr made = facade_->TryAlloc(kHere, Request{options_.block_bytes},
                                         stream(index), failure);
  has_chain_ |= Bit(index);
  frees_seen_[index] = frees_;
  if (made == nullptr) {
    ++refused_[index];
    if (!MayRefuse()) {
      findings_ += "refused: " + failure.ToString() + "\n";
    }
    return;
  }
  Life life;
  life.address = reinterpret_cast<std::uintptr_t>(made->data());
  Expect(made->size() >= options_.block_bytes, "too small");
  Expect(facade_->InSameStream(*made, stream(index)), "of another stream");
  for (const Life& other : lives_) {
    if (other.allocation == nullptr) continue;
    Expect(life.address + made->size() <= other.address ||
               other.address + other.allocation->size() <= life.address,
           "two live blocks overlap");
  }
  life.allocation = std::move(made);
  life.owner = index;
  life.capture = capture_of_[index];
  life.ordered = Bit(index);
  life.ready = RecordNew(index);
  if (life.capture != kNone) {
    Note(life.capture, StepKind::kAlloc, index, life.address);
  }
  lives_.push_back(std::move(life));
}

void ExploredProgram::Use(std::size_t index, std::size_t s) {
  Life& life = lives_[index];
  const bool joins = life.capture != kNone && IsActive(life.capture);
  if (joins && !IsCapturing(s)) JoinCapture(s, life.capture);
  const std::size_t capture = capture_of_[s];
  if (capture == kNone || joins) WaitForReady(life, s);
  life.words.push_back(++word_);
  const auto end = life.address + life.allocation->size();
  const WorkRange ranges[] = {
      {life.address, life.allocation->size() / kWordBytes * kWordBytes, false},
      {life.address, kWordBytes, true},
      {end / kWordBytes * kWordBytes - kWordBytes, kWordBytes, true}};
  Expect(platform_->work(0)->Enqueue(stream(s), ranges, std::size(ranges), 0,
                                     word_),
         "Enqueue");
  if (capture != kNone) {
    UseCaptured(index, s, capture);
    return;
  }
  if (s != life.owner) life.needs |= Bit(s);
  NoteUse(life, s);
  life.last_use[s] = order_->Submitted(s);
  work_[s].push_back(Work{life.last_use[s], index, kNone});
  if (life.capture != kNone) {
    captures_[life.capture].later_uses.push_back(RecordNew(s));
  }
}

void ExploredProgram::UseCaptured(std::size_t index, std::size_t s,
                                  std::size_t capture) {
  Life& life = lives_[index];
  life.captured_use = true;
  Note(capture, StepKind::kUse, s, life.address);
  if (life.capture == capture) {
    if (s != life.owner) life.needs |= Bit(s);
  } else if (!IsInput(captures_[capture], index)) {
    captures_[capture].inputs.push_back(index);
  }
}

void ExploredProgram::NoteUse(Life& life, std::size_t s) {
  if (!options_.marks_name_events || s == life.owner) return;
  life.used[s] = RecordNew(s);
  life.marks &= ~Bit(s);
}

bool ExploredProgram::MarkUse(Life& life, std::size_t s) {
  Event event = life.used[s];
  if (!event) {
    event = events_[kMarkEvent];
    Record(event, s);
  }
  ExploredOrder::Join(moment_, order_->recorded(event).before);
  life.moments[s] = moment_;
  return facade_->RecordUse(*life.allocation, stream(s), event);
}

void ExploredProgram::Mark(std::size_t index, std::size_t s) {
  Life& life = lives_[index];
  life.moments[s].clear();
  const bool names_event = options_.marks_name_events && !IsCapturing(s);
  const bool noted = names_event
                         ? MarkUse(life, s)
                         : facade_->RecordStream(life.allocation, stream(s));
  Expect(noted || !facade_->IsStreamSafeCUDAAllocatorUsed(), "not marked");
  life.marks |= Bit(s);
  life.marked |= Bit(s);
  if (IsCapturing(s)) {
    life.held |= Bit(capture_of_[s]);
    Note(capture_of_[s], StepKind::kMark, s, life.address);
  } else if (life.capture != kNone && !names_event) {
    // The use may be any earlier work of the stream.
    captures_[life.capture].later_uses.push_back(RecordNew(s));
  }
}

void ExploredProgram::Free(std::size_t index) {
  Life& life = lives_[index];
  for (std::size_t c = 0; c < captures_.size(); ++c) {
    if (capture_of_[life.owner] == c) {
      life.held |= Bit(c);
      Note(c, StepKind::kFree, life.owner, life.address);
    } else if (IsInput(captures_[c], index) && (life.held & Bit(c)) == 0) {
      captures_[c].valid = false;
    }
  }
  for (std::size_t s = 0; s < options_.streams; ++s) {
    life.freed_at[s] = order_->Submitted(s);
  }
  ++frees_[life.owner];
  life.allocation.reset();
}

void ExploredProgram::Complete(std::size_t s) {
  SimDevice& sim = platform_->sim_device(0);
  const auto next = [&] {
    const Position completed = order_->Completed(s);
    for (const Work& work : work_[s]) {
      if (work.position > completed) return work.position;
    }
    return order_->Submitted(s);
  };
  const Position target = next();
  while (order_->Completed(s) < target && sim.Step(stream(s))) {
  }
  // Work that the program did not submit runs as early as possible.
  while (order_->Completed(s) >= target && order_->Completed(s) + 1 < next() &&
         sim.Step(stream(s))) {
  }
  for (std::size_t i = options_.streams; i < order_->stream_count(); ++i) {
    while (sim.Step(stream(i))) {
    }
  }
}

void ExploredProgram::Begin(std::size_t s) {
  Capture capture;
  capture.origin = s;
  capture.streams = Bit(s);
  try {
    capture.guard = std::make_unique<CaptureGuard>(*facade_, stream(s), pool_);
  } catch (const std::exception& error) {
    findings_ += std::string(error.what()) + "\n";
    return;
  }
  order_->SetCapturing(s, true);
  capture_of_[s] = captures_.size();
  captures_.push_back(std::move(capture));
}

void ExploredProgram::JoinCapture(std::size_t s, std::size_t capture) {
  order_->SetCapturing(s, true);
  capture_of_[s] = capture;
  captures_[capture].streams |= Bit(s);
}

void ExploredProgram::End(std::size_t index) {
  Capture& capture = captures_[index];
  for (std::size_t s = 0; s < options_.streams; ++s) {
    if (capture_of_[s] != index || s == capture.origin) continue;
    WaitFor(RecordNew(s), capture.origin);
  }
  try {
    capture.graph = capture.guard->End();
    const ThreadCaptureMode relaxed(&device(), CaptureMode::kRelaxed);
    Expect(device().GraphInstantiate(&capture.exec, capture.graph, 0),
           "GraphInstantiate");
  } catch (const std::exception& error) {
    findings_ += std::string(error.what()) + "\n";
    capture.valid = false;
  }
  capture.guard.reset();
  for (std::size_t s = 0; s < options_.streams; ++s) {
    if (capture_of_[s] != index) continue;
    capture_of_[s] = kNone;
    order_->SetCapturing(s, false);
  }
  if (capture.valid) Launch(index);
}

void ExploredProgram::WaitForLaunch(std::size_t capture, std::size_t origin) {
  for (Life& life : lives_) {
    if (life.capture != capture || life.allocation == nullptr) continue;
    Record(life.ready, origin);
    life.ordered = Bit(origin);
  }
}

void ExploredProgram::WaitForUsers(std::size_t index) {
  if (has_launched_) WaitFor(events_[kLaunchEvent], captures_[index].origin);
  for (std::size_t c = 0; c < captures_.size(); ++c) {
    if (c != index && !options_.shares_pool) continue;
    for (const Event event : captures_[c].later_uses) {
      WaitFor(event, captures_[index].origin);
    }
  }
}

void ExploredProgram::Launch(std::size_t index) {
  Capture& capture = captures_[index];
  const std::size_t origin = capture.origin;
  for (const std::size_t input : capture.inputs) {
    WaitForReady(lives_[input], origin);
  }
  WaitForUsers(index);
  {
    const ThreadCaptureMode relaxed(&device(), CaptureMode::kRelaxed);
    Expect(device().GraphLaunch(capture.exec, stream(origin)), "GraphLaunch");
  }
  capture.launched_at = order_->Submitted(origin);
  work_[origin].push_back(Work{capture.launched_at, kNone, index});
  for (const std::size_t input : capture.inputs) {
    NoteUse(lives_[input], origin);
    lives_[input].last_use[origin] = capture.launched_at;
    const std::size_t pool = lives_[input].capture;
    if (pool != kNone) captures_[pool].later_uses.push_back(RecordNew(origin));
  }
  WaitForLaunch(index, origin);
  if (!options_.shares_pool) return;
  Record(events_[kLaunchEvent], origin);
  has_launched_ = true;
  for (std::size_t c = 0; c < captures_.size(); ++c) {
    if (!IsActive(c)) WaitForLaunch(c, origin);
  }
}

}  // namespace strata
