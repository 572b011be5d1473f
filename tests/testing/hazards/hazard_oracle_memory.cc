// The part of HazardOracle for memory: regions, blocks and their uses.

#include <algorithm>

#include "strata/tests/testing/hazards/hazard_oracle.h"

namespace strata {
namespace {

constexpr std::uint64_t kDeviceTag = ~std::uint64_t{0};

}  // namespace

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
    if (now >= 0 && LifeOf(now).freed) Flag();
    AddUse(physical, {vertex, now, index, write, record_}, true);
  }
}

void HazardOracle::StepBlock(const CallRecord& call) {
  CaptureState* capture =
      call.stream_uid != 0 ? CaptureOf(call.stream_uid) : nullptr;
  if (call.call == DeviceCall::kBlockAlloc) {
    StepBlockAlloc(call, capture);
    return;
  }
  const auto block = blocks_.find(call.ptr);
  if (block != blocks_.end()) {
    if (call.stream_uid != 0) Conclude(call, capture, block->second);
    if (capture != nullptr) {
      LifeOf(block->second).kept_for.insert(capture->graph);
    }
  }
  if (call.call != DeviceCall::kBlockFree) return;
  if (block != blocks_.end()) {
    LifeOf(block->second).freed = true;
    blocks_.erase(block);
  }
  tags_[kDeviceTag].push_back(HostVertex(call.thread, {}));
}

void HazardOracle::StepBlockAlloc(const CallRecord& call,
                                  CaptureState* capture) {
  const int host = HostVertex(call.thread, tags_[kDeviceTag]);
  const int life = static_cast<int>(lives_.size());
  lives_.push_back({capture != nullptr ? capture->graph : -1, false, {}});
  for (std::uint64_t at = call.ptr; at < call.ptr + call.bytes; at += kStep) {
    const int index = RegionAt(at);
    if (index < 0) continue;
    const std::uint64_t physical = Physical(index, at);
    if (capture != nullptr) {
      GiveInGraph(capture, call.stream_uid, physical);
    } else {
      const bool on_host = RegionOf(index).kind == 'h';
      Give(host, on_host ? 0 : call.stream_uid, physical);
    }
    current_[physical] = life;
  }
  blocks_[call.ptr] = life;
  block_bytes_[call.ptr] = call.bytes;
}

void HazardOracle::GiveInGraph(CaptureState* capture, std::uint64_t stream,
                               std::uint64_t physical) {
  GraphState& graph = GraphOf(*capture);
  const std::set<int>& frontier = capture->frontier[stream];
  const auto covers = [&](int node) {
    return std::any_of(frontier.begin(), frontier.end(), [&](int end) {
      return end == node || graph.IsBefore(node, end);
    });
  };
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    for (const NodeUse& use : graph.nodes[n].uses) {
      if (use.region >= 0 && Physical(use.region, use.granule) == physical &&
          !covers(static_cast<int>(n))) {
        graph.hazards.push_back(record_);
      }
    }
  }
  for (const auto& [node, use] : graph.concluded[physical]) {
    if (!covers(node)) graph.hazards.push_back(record_);
  }
}

void HazardOracle::Give(int host, std::uint64_t stream,
                        std::uint64_t physical) {
  std::vector<int> before{host};
  if (stream != 0) {
    for (const int from : Before(stream)) before.push_back(from);
  }
  for (const Use& use : uses_[physical]) {
    const bool is_ordered = std::any_of(
        before.begin(), before.end(),
        [&](int end) { return end >= 0 && Reaches(use.vertex, end); });
    if (!is_ordered) Flag();
  }
}

void HazardOracle::Conclude(const CallRecord& call, CaptureState* capture,
                            int life) {
  const std::uint64_t stream = call.stream_uid;
  const bool is_free = call.call == DeviceCall::kBlockFree;
  for (std::uint64_t at = call.ptr; at < call.ptr + block_bytes_[call.ptr];
       at += kStep) {
    const int index = RegionAt(at);
    if (index < 0 || (is_free && RegionOf(index).kind == 'h')) continue;
    const std::uint64_t physical = Physical(index, at);
    if (capture == nullptr) {
      const std::vector<int>& counted = streams_[stream].counted;
      if (counted.empty()) continue;
      AddUse(physical, {counted.back(), life, index, false, record_}, false);
    } else if (LifeOf(life).capture == capture->graph &&
               capture->last.count(stream) != 0) {
      const NodeUse use{at, life, index, false, false, record_};
      GraphOf(*capture).concluded[physical].push_back(
          {capture->last[stream], use});
    }
  }
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
  const int node = capture != nullptr ? NewNode(capture, call.stream_uid) : -1;
  const int vertex =
      capture != nullptr
          ? -1
          : Work(call.stream_uid, HostVertex(call.thread, {}), {}, true);
  if (allocates) {
    for (std::uint64_t at = call.ptr; at < call.ptr + call.bytes; at += kStep) {
      uses_.erase(at);
      current_.erase(at);
    }
    Region region{capture != nullptr ? 'g' : 'p', call.ptr, call.bytes,
                  call.ptr};
    region.begins = vertex;
    region.graph = capture != nullptr ? capture->graph : -1;
    region.node = node;
    regions_.push_back(region);
    return;
  }
  const int index = RegionAt(call.ptr);
  if (index < 0) return;
  if (capture != nullptr) {
    FreeInGraph(capture, node, index);
  } else {
    EndRegion(index, vertex);
  }
}

}  // namespace strata
