#include "strata/tests/testing/hazards/hazard_oracle.h"

#include <algorithm>

#include "strata/platform/stream.h"

namespace strata {
int HazardOracle::AddVertex(const std::vector<int>& before) {
  Vertices reached;
  for (const int from : before) {
    if (from < 0) continue;
    reached |= reached_[static_cast<std::size_t>(from)];
    reached.set(static_cast<std::size_t>(from));
  }
  reached_.push_back(reached);
  return static_cast<int>(reached_.size()) - 1;
}

int HazardOracle::HostVertex(std::uint64_t thread, std::vector<int> before) {
  const auto last = threads_.find(thread);
  if (last != threads_.end()) before.push_back(last->second);
  return threads_[thread] = AddVertex(before);
}

std::vector<int> HazardOracle::AllOf(std::uint64_t stream) {
  std::vector<int> all = streams_[stream].work;
  if (stream != kLegacyStreamUid) return all;
  for (const auto& [uid, state] : streams_) {
    if (!state.blocking || uid == kLegacyStreamUid) continue;
    all.insert(all.end(), state.work.begin(), state.work.end());
  }
  return all;
}

std::vector<int> HazardOracle::Before(std::uint64_t stream) {
  const StreamState& state = streams_[stream];
  std::vector<int> before = AllOf(stream);
  before.insert(before.end(), state.before.begin(), state.before.end());
  if (state.blocking && stream != kLegacyStreamUid) {
    const std::vector<int>& legacy = streams_[kLegacyStreamUid].work;
    before.insert(before.end(), legacy.begin(), legacy.end());
  }
  return before;
}

int HazardOracle::Work(std::uint64_t stream, int host, std::vector<int> before,
                       bool counted) {
  const std::vector<int> stream_before = Before(stream);
  before.insert(before.end(), stream_before.begin(), stream_before.end());
  before.push_back(host);
  const int vertex = AddVertex(before);
  streams_[stream].work.push_back(vertex);
  if (counted) streams_[stream].counted.push_back(vertex);
  return vertex;
}

std::set<std::uint64_t> HazardOracle::Judge(
    const std::vector<CallRecord>& program) {
  for (const CallRecord& call : program) {
    ++record_;
    if (call.status == Status::kSuccess) Step(call);
  }
  return hazards_;
}

HazardOracle::CaptureState* HazardOracle::CaptureOf(std::uint64_t stream) {
  for (CaptureState& capture : captures_) {
    if (capture.frontier.count(stream) != 0) return &capture;
  }
  return nullptr;
}

void HazardOracle::Step(const CallRecord& call) {
  const std::uint64_t stream = call.stream_uid;
  CaptureState* capture = stream != 0 ? CaptureOf(stream) : nullptr;
  switch (call.call) {
    case DeviceCall::kStreamCreate: {
      StreamState fresh;
      fresh.blocking = call.value == 0;
      fresh.before = {HostVertex(call.thread, {})};
      streams_[stream] = fresh;
      return;
    }
    case DeviceCall::kStreamDestroy:
      HostVertex(call.thread, {});
      streams_[stream].destroyed = true;
      return;
    case DeviceCall::kStreamSynchronize:
      HostVertex(call.thread, AllOf(stream));
      return;
    case DeviceCall::kSynchronize: {
      std::vector<int> all;
      for (const auto& [uid, state] : streams_) {
        all.insert(all.end(), state.work.begin(), state.work.end());
      }
      HostVertex(call.thread, all);
      return;
    }
    case DeviceCall::kEventRecord:
      if (capture != nullptr) {
        events_.erase(call.ptr);
        captured_[call.ptr] = {capture->graph, capture->frontier[stream]};
        return;
      }
      captured_.erase(call.ptr);
      events_[call.ptr] =
          Work(stream, HostVertex(call.thread, {}), {}, /*counted=*/false);
      return;
    case DeviceCall::kStreamWaitEvent: {
      const auto captured = captured_.find(call.ptr);
      if (captured == captured_.end()) {
        const auto event = events_.find(call.ptr);
        Work(stream, HostVertex(call.thread, {}),
             {event == events_.end() ? -1 : event->second}, false);
        return;
      }
      for (CaptureState& open : captures_) {
        if (open.graph != captured->second.first) continue;
        const std::set<int>& nodes = captured->second.second;
        open.frontier[stream].insert(nodes.begin(), nodes.end());
        return;
      }
      Flag();
      return;
    }
    case DeviceCall::kEventQuery:
    case DeviceCall::kEventSynchronize: {
      if (captured_.count(call.ptr) != 0) {
        Flag();
        return;
      }
      const auto event = events_.find(call.ptr);
      HostVertex(call.thread, {event == events_.end() ? -1 : event->second});
      return;
    }
    case DeviceCall::kHostRelease:
      tags_[call.ptr].push_back(HostVertex(call.thread, {}));
      return;
    case DeviceCall::kHostAcquire:
      HostVertex(call.thread, tags_[call.ptr]);
      return;
    case DeviceCall::kUse:
    case DeviceCall::kMemsetAsync: {
      const bool write =
          call.call == DeviceCall::kMemsetAsync || call.value != 0;
      if (capture != nullptr) {
        UseInGraph(capture, NewNode(capture, stream), call.ptr, call.bytes,
                   write);
        return;
      }
      const int host = HostVertex(call.thread, {});
      UseMemory(call, call.ptr, call.bytes, write,
                Work(stream, host, {}, true));
      return;
    }
    case DeviceCall::kBlockAlloc:
    case DeviceCall::kBlockFree:
    case DeviceCall::kBlockMark:
      StepBlock(call);
      return;
    case DeviceCall::kMallocFromPoolAsync:
    case DeviceCall::kFreeAsync:
      StepPool(call);
      return;
    default:
      StepMemory(call);
  }
}

}  // namespace strata
