#include "strata/platform/sim/graphs/capture_set.h"

#include <algorithm>
#include <cstddef>

namespace strata::sim {
namespace {

constexpr CaptureRule kRules[] = {
#define STRATA_CAPTURE_RULE(method, conflict, status, unsafe, source)   \
  {DeviceCall::k##method, CaptureConflict::k##conflict, Status::status, \
   CaptureUnsafe::k##unsafe, source},
#include "strata/platform/sim/graphs/capture_rules.def"
#undef STRATA_CAPTURE_RULE
};
static_assert(AreEntryPoints(kRules));

std::uint64_t NewCaptureId() {
  static std::atomic<std::uint64_t> next{1};
  return next.fetch_add(1, std::memory_order_relaxed);
}

bool IsOn(const SimCapture& capture, std::int32_t device) {
  return std::any_of(
      capture.members.begin(), capture.members.end(),
      [device](const auto& member) { return member.first.first == device; });
}

bool HasBlockingOn(const SimCapture& capture, std::int32_t device) {
  return std::any_of(capture.members.begin(), capture.members.end(),
                     [device](const auto& member) {
                       return member.first.first == device &&
                              member.second.blocking;
                     });
}

void AddAll(const std::vector<NodeIndex>& nodes, std::vector<NodeIndex>* to) {
  for (const NodeIndex node : nodes) {
    if (std::find(to->begin(), to->end(), node) == to->end()) {
      to->push_back(node);
    }
  }
}

}  // namespace

const CaptureRule& CaptureRuleOf(DeviceCall call) {
  return kRules[static_cast<std::size_t>(call)];
}

Status CaptureSet::Check(const CaptureRule& rule, const Subject& subject) {
  const Status conflict = CheckConflict(rule, subject);
  if (conflict != Status::kSuccess) return conflict;
  if (rule.unsafe == CaptureUnsafe::kNever) return Status::kSuccess;
  if (rule.unsafe == CaptureUnsafe::kOutside &&
      Find(subject.stream) != nullptr) {
    return Status::kSuccess;
  }
  return CheckUnsafe(subject);
}

Status CaptureSet::CheckConflict(const CaptureRule& rule,
                                 const Subject& subject) {
  const bool legacy = subject.stream.uid == kLegacyStreamUid;
  SimCapture* capture = Find(subject.stream);
  switch (rule.conflict) {
    case CaptureConflict::kNone:
      return Status::kSuccess;
    case CaptureConflict::kDevice: {
      Status status = Status::kSuccess;
      for (const auto& live : captures_) {
        if (!IsOn(*live, subject.device)) continue;
        Invalidate(live.get());
        status = rule.status;
      }
      return status;
    }
    case CaptureConflict::kEvent:
      return CheckEvent(rule, subject.event);
    case CaptureConflict::kAsk:
      if (legacy) return CheckLegacy(subject.stream.device, false);
      return Status::kSuccess;
    case CaptureConflict::kStream:
    case CaptureConflict::kSubmit:
      break;
  }
  if (legacy) return CheckLegacy(subject.stream.device, true);
  if (capture == nullptr) return Status::kSuccess;
  if (capture->status == CaptureStatus::kInvalidated) {
    return Status::kStreamCaptureInvalidated;
  }
  if (rule.conflict == CaptureConflict::kStream) Invalidate(capture);
  return rule.status;
}

Status CaptureSet::CheckLegacy(std::int32_t device, bool invalidate) {
  Status status = Status::kSuccess;
  for (const auto& capture : captures_) {
    if (!HasBlockingOn(*capture, device)) continue;
    if (invalidate) Invalidate(capture.get());
    status = Status::kStreamCaptureImplicit;
  }
  return status;
}

Status CaptureSet::CheckEvent(const CaptureRule& rule, Event event) {
  const auto found = events_.find(event.value);
  if (found == events_.end()) return Status::kSuccess;
  SimCapture* capture = found->second.capture.get();
  // The capture has ended.
  if (capture->graph == nullptr) return Status::kInvalidValue;
  if (capture->status == CaptureStatus::kInvalidated) {
    return Status::kStreamCaptureInvalidated;
  }
  Invalidate(capture);
  return rule.status;
}

Status CaptureSet::CheckUnsafe(const Subject& subject) {
  const CaptureMode mode = ModeOf(subject.thread);
  if (mode == CaptureMode::kRelaxed) return Status::kSuccess;
  Status status = Status::kSuccess;
  for (const auto& capture : captures_) {
    const bool own = capture->thread == subject.thread;
    const bool hit = own ? capture->mode != CaptureMode::kRelaxed
                         : mode == CaptureMode::kGlobal &&
                               capture->mode == CaptureMode::kGlobal;
    if (!hit) continue;
    Invalidate(capture.get());
    status = Status::kStreamCaptureUnsupported;
  }
  return status;
}

Status CaptureSet::Begin(SimCapture capture, bool blocking,
                         std::vector<NodeIndex> dependencies) {
  const auto running = by_stream_.find(capture.origin);
  if (running != by_stream_.end()) {
    return running->second->status == CaptureStatus::kInvalidated
               ? Status::kStreamCaptureInvalidated
               : Status::kIllegalState;
  }
  capture.id = NewCaptureId();
  SimCapture::Member& origin = capture.members[capture.origin];
  origin.blocking = blocking;
  origin.dependencies = std::move(dependencies);
  captures_.push_back(std::make_shared<SimCapture>(std::move(capture)));
  by_stream_.emplace(captures_.back()->origin, captures_.back().get());
  NoteWatched();
  return Status::kSuccess;
}

Status CaptureSet::End(const Stream& stream, std::uint64_t thread,
                       std::shared_ptr<const SimCapture>* ended,
                       Status* outcome) {
  SimCapture* capture = Find(stream);
  if (capture == nullptr) return Status::kIllegalState;
  if (capture->origin != KeyOf(stream)) {
    Invalidate(capture);
    return Status::kStreamCaptureUnmatched;
  }
  *outcome = Status::kSuccess;
  if (capture->mode != CaptureMode::kRelaxed && capture->thread != thread) {
    *outcome = Status::kStreamCaptureWrongThread;
  } else if (capture->status == CaptureStatus::kInvalidated) {
    *outcome = Status::kStreamCaptureInvalidated;
  } else if (!IsJoined(*capture)) {
    *outcome = Status::kStreamCaptureUnjoined;
  }
  for (const auto& [key, member] : capture->members) by_stream_.erase(key);
  const auto found = std::find_if(
      captures_.begin(), captures_.end(),
      [capture](const auto& other) { return other.get() == capture; });
  capture->graph = nullptr;
  *ended = std::move(*found);
  captures_.erase(found);
  NoteWatched();
  return Status::kSuccess;
}

bool CaptureSet::IsJoined(const SimCapture& capture) {
  const auto& last = capture.members.at(capture.origin).dependencies;
  return std::all_of(
      capture.members.begin(), capture.members.end(), [&](const auto& member) {
        const auto& nodes = member.second.dependencies;
        return std::all_of(nodes.begin(), nodes.end(), [&](NodeIndex node) {
          return capture.graph->IsBefore(node, last) ||
                 capture.forgiven.Contains(node);
        });
      });
}

SimCapture* CaptureSet::Find(const Stream& stream) const {
  if (by_stream_.empty()) return nullptr;
  const auto found = by_stream_.find(KeyOf(stream));
  return found == by_stream_.end() ? nullptr : found->second;
}

std::vector<NodeIndex>& CaptureSet::DependenciesOf(SimCapture* capture,
                                                   const Stream& stream) {
  return capture->members.at(KeyOf(stream)).dependencies;
}

Status CaptureSet::UpdateDependencies(const Stream& stream,
                                      const std::vector<NodeIndex>& nodes,
                                      bool replace) {
  SimCapture* capture = Find(stream);
  if (capture == nullptr) return Status::kIllegalState;
  if (capture->status == CaptureStatus::kInvalidated) {
    return Status::kStreamCaptureInvalidated;
  }
  std::vector<NodeIndex>& dependencies = DependenciesOf(capture, stream);
  if (replace) {
    for (const NodeIndex node : dependencies) {
      capture->forgiven.Add(node);
      capture->forgiven.Join(capture->graph->nodes()[node].ancestors);
    }
    dependencies.clear();
  }
  AddAll(nodes, &dependencies);
  return Status::kSuccess;
}

Status CaptureSet::RecordEvent(Event event, const Stream& stream) {
  SimCapture* capture = Find(stream);
  if (capture->status == CaptureStatus::kInvalidated) {
    return Status::kStreamCaptureInvalidated;
  }
  const auto found = std::find_if(
      captures_.begin(), captures_.end(),
      [capture](const auto& other) { return other.get() == capture; });
  events_[event.value] = {*found, DependenciesOf(capture, stream)};
  NoteWatched();
  return Status::kSuccess;
}

void CaptureSet::ForgetEvent(Event event) {
  if (events_.erase(event.value) != 0) NoteWatched();
}

Status CaptureSet::Wait(const Stream& stream, bool blocking, Event event,
                        bool is_recorded) {
  SimCapture* own = Find(stream);
  if (own != nullptr && own->status == CaptureStatus::kInvalidated) {
    return Status::kStreamCaptureInvalidated;  // C8
  }
  const auto found = events_.find(event.value);
  if (found == events_.end()) {
    if (!is_recorded) return Status::kSuccess;
    Invalidate(own);  // recorded outside: C7
    return Status::kStreamCaptureIsolation;
  }
  const CapturedEvent& captured = found->second;
  SimCapture* other = captured.capture.get();
  if (other->graph == nullptr) {  // the capture has ended
    if (own != nullptr) Invalidate(own);
    return Status::kInvalidValue;
  }
  if (own == nullptr) {
    if (other->status == CaptureStatus::kInvalidated) {
      return Status::kInvalidValue;  // C8
    }
    if (stream.uid == kLegacyStreamUid) {  // it cannot take part in a capture
      Invalidate(other);
      return Status::kStreamCaptureUnsupported;
    }
    other->members[KeyOf(stream)] = {blocking, captured.nodes};
    by_stream_.emplace(KeyOf(stream), other);
    return Status::kSuccess;
  }
  if (own != other) {
    Invalidate(own);
    Invalidate(other);
    return Status::kStreamCaptureMerge;
  }
  AddAll(captured.nodes, &DependenciesOf(own, stream));
  return Status::kSuccess;
}

void CaptureSet::InvalidateOn(std::int32_t device) {
  for (const auto& capture : captures_) {
    if (IsOn(*capture, device)) Invalidate(capture.get());
  }
}

void CaptureSet::ExchangeMode(std::uint64_t thread, CaptureMode* mode) {
  const CaptureMode before = ModeOf(thread);
  if (*mode == CaptureMode::kGlobal) {
    modes_.erase(thread);
  } else {
    modes_[thread] = *mode;
  }
  *mode = before;
}

std::uint64_t CaptureSet::CountOf(std::int32_t device) const {
  return static_cast<std::uint64_t>(std::count_if(
      captures_.begin(), captures_.end(), [device](const auto& capture) {
        return capture->origin.first == device;
      }));
}

CaptureMode CaptureSet::ModeOf(std::uint64_t thread) const {
  const auto found = modes_.find(thread);
  return found == modes_.end() ? CaptureMode::kGlobal : found->second;
}

void CaptureSet::NoteWatched() {
  watched_.store(captures_.size() + events_.size(), std::memory_order_release);
}

}  // namespace strata::sim
