#include "strata/tests/testing/hazard_oracle.h"

#include <algorithm>

#include "strata/platform/stream.h"

namespace strata {
namespace {

constexpr std::uint64_t kStep = HazardOracle::kGranuleBytes;
constexpr std::uint64_t kDeviceTag = ~std::uint64_t{0};

}  // namespace

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

int HazardOracle::RegionAt(std::uint64_t address) const {
  for (std::size_t i = regions_.size(); i-- > 0;) {
    const Region& region = regions_[i];
    if (region.live && address >= region.ptr &&
        address < region.ptr + region.bytes) {
      return static_cast<int>(i);
    }
  }
  return -1;
}

int HazardOracle::GoneAt(std::uint64_t address) const {
  for (std::size_t i = regions_.size(); i-- > 0;) {
    const Region& region = regions_[i];
    if (address < region.ptr || address >= region.ptr + region.bytes) continue;
    const bool is_gone = !region.live && region.kind != 'h';
    return is_gone ? static_cast<int>(i) : -1;
  }
  return -1;
}

std::uint64_t HazardOracle::Physical(int region, std::uint64_t address) const {
  const Region& of = RegionOf(region);
  return of.physical + (address - of.ptr);
}

void HazardOracle::AddUse(std::uint64_t physical, const Use& use, bool check) {
  for (const Use& known : uses_[physical]) {
    if (!check || Reaches(known.vertex, use.vertex)) continue;
    const bool is_alias =
        known.region != use.region && (known.write || use.write);
    if (known.life != use.life || is_alias) Flag();
  }
  uses_[physical].push_back(use);
}

void HazardOracle::UseMemory(const CallRecord&, std::uint64_t ptr,
                             std::uint64_t bytes, bool write, int vertex) {
  for (std::uint64_t at = ptr; at < ptr + bytes; at += kStep) {
    const int index = RegionAt(at);
    if (index < 0) {
      if (GoneAt(at) >= 0) Flag();
      continue;
    }
    const Region& region = RegionOf(index);
    if (region.kind == 'p' && !Reaches(region.begins, vertex)) Flag();
    if (region.kind == 'g' &&
        (!region.there || !Reaches(region.begins, vertex))) {
      Flag();
    }
    const std::uint64_t physical = Physical(index, at);
    const auto life = current_.find(physical);
    const int now = life == current_.end() ? -1 : life->second;
    if (now >= 0 && lives_[static_cast<std::size_t>(now)].freed) Flag();
    AddUse(physical, {vertex, now, index, write, record_}, true);
  }
}

void HazardOracle::StepBlock(const CallRecord& call) {
  CaptureState* capture =
      call.stream_uid != 0 ? CaptureOf(call.stream_uid) : nullptr;
  if (call.call == DeviceCall::kBlockAlloc) {
    const int host = HostVertex(call.thread, tags_[kDeviceTag]);
    const int life = static_cast<int>(lives_.size());
    lives_.push_back({capture != nullptr ? capture->graph : -1, false, {}});
    for (std::uint64_t at = call.ptr; at < call.ptr + call.bytes; at += kStep) {
      const int index = RegionAt(at);
      if (index < 0) continue;
      const std::uint64_t physical = Physical(index, at);
      if (capture != nullptr) {
        GraphState& graph = graphs_[static_cast<std::size_t>(capture->graph)];
        const std::set<int>& frontier = capture->frontier[call.stream_uid];
        const auto covers = [&](int node) {
          return std::any_of(frontier.begin(), frontier.end(), [&](int end) {
            return end == node ||
                   graph.nodes[static_cast<std::size_t>(end)].ancestors.count(
                       node) != 0;
          });
        };
        for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
          for (const NodeUse& use : graph.nodes[n].uses) {
            if (use.region >= 0 &&
                Physical(use.region, use.granule) == physical &&
                !covers(static_cast<int>(n))) {
              graph.hazards.push_back(record_);
            }
          }
        }
        for (const auto& [node, use] : graph.concluded[physical]) {
          if (!covers(node)) graph.hazards.push_back(record_);
        }
      } else {
        std::vector<int> before{host};
        if (RegionOf(index).kind != 'h' && call.stream_uid != 0) {
          for (const int from : Before(call.stream_uid)) before.push_back(from);
        }
        for (const Use& use : uses_[physical]) {
          const bool is_ordered = std::any_of(
              before.begin(), before.end(),
              [&](int end) { return end >= 0 && Reaches(use.vertex, end); });
          if (!is_ordered) Flag();
        }
      }
      current_[physical] = life;
    }
    blocks_[call.ptr] = life;
    block_bytes_[call.ptr] = call.bytes;
    return;
  }
  const auto block = blocks_.find(call.ptr);
  if (block != blocks_.end() && call.stream_uid != 0) {
    const int life = block->second;
    const bool is_free = call.call == DeviceCall::kBlockFree;
    for (std::uint64_t at = call.ptr; at < call.ptr + block_bytes_[call.ptr];
         at += kStep) {
      const int index = RegionAt(at);
      if (index < 0 || (is_free && RegionOf(index).kind == 'h')) continue;
      if (capture == nullptr) {
        const std::vector<int>& counted = streams_[call.stream_uid].counted;
        if (counted.empty()) continue;
        AddUse(Physical(index, at),
               {counted.back(), life, index, false, record_}, false);
      } else if (lives_[static_cast<std::size_t>(life)].capture ==
                     capture->graph &&
                 capture->last.count(call.stream_uid) != 0) {
        NodeUse use{at, life, index, false, false, record_};
        graphs_[static_cast<std::size_t>(capture->graph)]
            .concluded[Physical(index, at)]
            .push_back({capture->last[call.stream_uid], use});
      }
    }
  }
  if (block != blocks_.end() && capture != nullptr) {
    lives_[static_cast<std::size_t>(block->second)].kept_for.insert(
        capture->graph);
  }
  if (call.call != DeviceCall::kBlockFree) return;
  if (block != blocks_.end()) {
    lives_[static_cast<std::size_t>(block->second)].freed = true;
    blocks_.erase(block);
  }
  tags_[kDeviceTag].push_back(HostVertex(call.thread, {}));
}

void HazardOracle::EndRegion(int index, int vertex) {
  Region& region = regions_[static_cast<std::size_t>(index)];
  for (std::uint64_t at = region.ptr; at < region.ptr + region.bytes;
       at += kStep) {
    const std::uint64_t physical = Physical(index, at);
    for (const Use& use : uses_[physical]) {
      const bool is_other = region.kind == 'm' && use.region != index;
      if (!is_other && !Reaches(use.vertex, vertex)) Flag();
    }
    if (region.kind != 'm' && region.kind != 'g') {
      uses_.erase(physical);
      current_.erase(physical);
    }
  }
  if (region.kind == 'g') {
    region.there = false;
  } else {
    region.live = false;
  }
}

void HazardOracle::StepMemory(const CallRecord& call) {
  const auto add = [&](char kind, std::uint64_t physical) {
    regions_.push_back({kind, call.ptr, call.bytes, physical});
    if (kind == 'm') return;
    for (std::uint64_t at = 0; at < call.bytes; at += kStep) {
      uses_.erase(physical + at);
      current_.erase(physical + at);
    }
  };
  const int region = RegionAt(call.ptr);
  switch (call.call) {
    case DeviceCall::kMemAlloc:
      add('d', call.ptr);
      return;
    case DeviceCall::kMallocHost:
      add('h', call.ptr);
      return;
    case DeviceCall::kMemFree:
    case DeviceCall::kFreeHost:
    case DeviceCall::kUnmapRange:
      if (region >= 0) EndRegion(region, HostVertex(call.thread, {}));
      return;
    case DeviceCall::kCreateMemory:
      handles_[call.ptr] = static_cast<int>(handles_.size()) + 1;
      return;
    case DeviceCall::kMapRange:
      // Far from all addresses.
      add('m', static_cast<std::uint64_t>(handles_[call.value]) << 56);
      return;
    case DeviceCall::kGraphLaunch:
      StepLaunch(call);
      return;
    default:
      StepCapture(call);
  }
}

void HazardOracle::StepPool(const CallRecord& call) {
  CaptureState* capture = CaptureOf(call.stream_uid);
  const bool allocates = call.call == DeviceCall::kMallocFromPoolAsync;
  const auto clear = [&] {
    for (std::uint64_t at = call.ptr; at < call.ptr + call.bytes; at += kStep) {
      uses_.erase(at);
      current_.erase(at);
    }
  };
  if (capture != nullptr) {
    GraphState& graph = graphs_[static_cast<std::size_t>(capture->graph)];
    const int node = NewNode(capture, call.stream_uid);
    if (allocates) {
      clear();
      Region region{'g', call.ptr, call.bytes, call.ptr};
      region.graph = capture->graph;
      region.node = node;
      regions_.push_back(region);
      return;
    }
    const int index = RegionAt(call.ptr);
    if (index < 0) return;
    Region& region = regions_[static_cast<std::size_t>(index)];
    for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
      const std::set<int>& before =
          graph.nodes[static_cast<std::size_t>(node)].ancestors;
      for (const NodeUse& use : graph.nodes[n].uses) {
        if (use.region == index && before.count(static_cast<int>(n)) == 0) {
          graph.hazards.push_back(record_);
        }
      }
    }
    if (region.graph == capture->graph) region.freed_in_graph = true;
    return;
  }
  const int vertex =
      Work(call.stream_uid, HostVertex(call.thread, {}), {}, true);
  if (allocates) {
    clear();
    Region region{'p', call.ptr, call.bytes, call.ptr};
    region.begins = vertex;
    regions_.push_back(region);
  } else if (const int index = RegionAt(call.ptr); index >= 0) {
    EndRegion(index, vertex);
  }
}

int HazardOracle::NewNode(CaptureState* capture, std::uint64_t stream) {
  GraphState& graph = graphs_[static_cast<std::size_t>(capture->graph)];
  GraphNode node;
  for (const int end : capture->frontier[stream]) {
    const std::set<int>& before =
        graph.nodes[static_cast<std::size_t>(end)].ancestors;
    node.ancestors.insert(before.begin(), before.end());
    node.ancestors.insert(end);
  }
  const int index = static_cast<int>(graph.nodes.size());
  graph.nodes.push_back(node);
  capture->frontier[stream] = {index};
  capture->last[stream] = index;
  return index;
}

void HazardOracle::NodeConflicts(GraphState* graph, int node,
                                 const NodeUse& use) {
  const std::set<int>& before =
      graph->nodes[static_cast<std::size_t>(node)].ancestors;
  const std::uint64_t physical = Physical(use.region, use.granule);
  const auto check = [&](int other, const NodeUse& known) {
    if (other == node || before.count(other) != 0) return;
    const bool is_alias =
        known.region != use.region && (known.write || use.write);
    if (known.life != use.life || is_alias) graph->hazards.push_back(record_);
  };
  for (std::size_t n = 0; n < graph->nodes.size(); ++n) {
    for (const NodeUse& known : graph->nodes[n].uses) {
      if (known.region < 0 ||
          Physical(known.region, known.granule) != physical) {
        continue;
      }
      check(static_cast<int>(n), known);
    }
  }
  for (const auto& [other, known] : graph->concluded[physical]) {
    check(other, known);
  }
}

void HazardOracle::UseInGraph(CaptureState* capture, int node,
                              std::uint64_t ptr, std::uint64_t bytes,
                              bool write) {
  GraphState& graph = graphs_[static_cast<std::size_t>(capture->graph)];
  for (std::uint64_t at = ptr; at < ptr + bytes; at += kStep) {
    const int index = RegionAt(at);
    NodeUse use{at, -1, index, write, false, record_};
    if (index < 0) {
      if (GoneAt(at) >= 0) {
        graph.nodes[static_cast<std::size_t>(node)].uses.push_back(use);
      }
      continue;
    }
    const Region& region = RegionOf(index);
    const std::set<int>& before =
        graph.nodes[static_cast<std::size_t>(node)].ancestors;
    if (region.kind == 'g' && region.graph == capture->graph) {
      if (before.count(region.node) == 0) graph.hazards.push_back(record_);
      if (region.freed_in_graph) graph.hazards.push_back(record_);
    }
    const auto life = current_.find(Physical(index, at));
    if (life != current_.end()) {
      use.life = life->second;
      const Life& now = lives_[static_cast<std::size_t>(use.life)];
      use.was_freed = now.freed;
      if (now.freed && now.capture == capture->graph) {
        graph.hazards.push_back(record_);
      }
    }
    NodeConflicts(&graph, node, use);
    graph.nodes[static_cast<std::size_t>(node)].uses.push_back(use);
  }
}

void HazardOracle::StepCapture(const CallRecord& call) {
  switch (call.call) {
    case DeviceCall::kStreamBeginCapture: {
      CaptureState capture;
      capture.graph = static_cast<int>(graphs_.size());
      capture.origin = call.stream_uid;
      capture.frontier[call.stream_uid] = {};
      graphs_.emplace_back();
      captures_.push_back(capture);
      return;
    }
    case DeviceCall::kStreamEndCapture:
      for (std::size_t i = 0; i < captures_.size(); ++i) {
        if (captures_[i].origin != call.stream_uid) continue;
        graph_handles_[call.ptr] = captures_[i].graph;
        captures_.erase(captures_.begin() + static_cast<std::ptrdiff_t>(i));
        return;
      }
      return;
    case DeviceCall::kGraphInstantiate: {
      const int index = graph_handles_.at(call.value);
      GraphState& graph = graphs_[static_cast<std::size_t>(index)];
      hazards_.insert(graph.hazards.begin(), graph.hazards.end());
      Exec exec;
      exec.nodes = graph.nodes;
      exec.graph = index;
      for (std::size_t i = 0; i < regions_.size(); ++i) {
        if (regions_[i].graph == index) {
          exec.allocates.push_back(static_cast<int>(i));
        }
      }
      execs_[call.ptr] = exec;
      return;
    }
    default:
      return;
  }
}

void HazardOracle::StepLaunch(const CallRecord& call) {
  Exec& exec = execs_.at(call.ptr);
  const int vertex =
      Work(call.stream_uid, HostVertex(call.thread, {}), {exec.launched}, true);
  exec.launched = vertex;
  for (const int index : exec.allocates) {
    Region& region = regions_[static_cast<std::size_t>(index)];
    if (region.freed_in_graph) continue;
    region.begins = vertex;
    region.there = true;
  }
  for (const GraphNode& node : exec.nodes) {
    for (const NodeUse& use : node.uses) {
      const int index = RegionAt(use.granule);
      const bool is_own = use.region >= 0 && RegionOf(use.region).kind == 'g' &&
                          RegionOf(use.region).graph == exec.graph;
      if (is_own) {
        if (index == use.region) {
          AddUse(Physical(index, use.granule),
                 {vertex, -1, index, use.write, record_}, false);
        }
        continue;
      }
      if (index < 0) {
        Flag();
        continue;
      }
      const Region& region = RegionOf(index);
      if (region.kind == 'p' && !Reaches(region.begins, vertex)) Flag();
      const bool is_remapped =
          index != use.region && region.kind == 'm' &&
          (use.region < 0 || RegionOf(use.region).kind == 'm');
      if (index != use.region && !is_remapped) {
        Flag();
        continue;
      }
      const std::uint64_t physical = Physical(index, use.granule);
      const auto found = current_.find(physical);
      const int now = found == current_.end() ? -1 : found->second;
      if (!is_remapped && use.life >= 0) {
        const Life& life = lives_[static_cast<std::size_t>(use.life)];
        const bool is_eager = life.capture < 0;
        const bool is_kept = life.kept_for.count(exec.graph) != 0;
        if (life.freed && (use.was_freed || (is_eager && !is_kept))) Flag();
        const bool is_taken =
            now != use.life && now >= 0 &&
            (is_eager ? is_kept
                      : lives_[static_cast<std::size_t>(now)].capture < 0);
        if (is_taken) Flag();
      }
      AddUse(physical,
             {vertex, is_remapped ? now : use.life, index, use.write, record_},
             true);
    }
  }
}

}  // namespace strata
