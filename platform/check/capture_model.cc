#include "strata/platform/check/capture_model.h"

#include <algorithm>
#include <set>
#include <tuple>
#include <utility>

namespace strata::check {
namespace {

// The clock after the nodes with these handles.
OrderClock After(const GraphModel& graph,
                 const std::vector<std::uint64_t>& handles) {
  OrderClock clock;
  for (const std::uint64_t handle : handles) {
    const auto found = graph.by_handle.find(handle);
    if (found == graph.by_handle.end()) return graph.AfterAll();
    const GraphNodeModel& node = graph.nodes[found->second];
    clock.Join(node.before);
    clock.Raise(node.epoch.component, node.epoch.count);
  }
  return clock;
}

}  // namespace

OrderClock GraphModel::AfterAll() const {
  OrderClock clock;
  for (std::uint32_t chain = 0; chain < chains.size(); ++chain) {
    clock.Raise(chain, chains[chain]);
  }
  return clock;
}

void ExecModel::Take(const GraphModel& from) {
  nodes = from.nodes;
  chains = from.chains;
  allocates = from.allocates;
  frees = from.frees;
  tokens = from.tokens;
  graph = from.id;
  recorded.clear();
  awaited.clear();
  for (const GraphNodeModel& node : nodes) {
    if (node.waits != 0) awaited.push_back({node.waits, node.epoch});
    if (node.records == 0) continue;
    recorded.push_back({node.records, node.before, WaitsIn(node.before)});
  }
  uses.clear();
  using Key =
      std::tuple<std::uint64_t, std::uint64_t, bool, const void*, const void*,
                 bool, std::size_t, std::vector<std::uint64_t>>;
  std::set<Key> seen;
  for (const GraphNodeModel& node : nodes) {
    const std::size_t stage = StageOf(node.epoch);
    const std::vector<std::uint64_t> waits = WaitsIn(node.before);
    for (NodeUse use : node.uses) {
      use.stage = stage;
      use.waits = waits;
      const Key key{use.ptr,        use.bytes,     use.write, use.region.get(),
                    use.life.get(), use.was_freed, use.stage, use.waits};
      if (seen.insert(key).second) uses.push_back(std::move(use));
    }
  }
}

std::size_t ExecModel::StageOf(const Epoch& node) const {
  const auto found = std::find_if(
      recorded.begin(), recorded.end(),
      [&](const Recorded& record) { return record.before.Covers(node); });
  return static_cast<std::size_t>(found - recorded.begin());
}

std::vector<std::uint64_t> ExecModel::WaitsIn(const OrderClock& before) const {
  std::vector<std::uint64_t> waits;
  for (const Awaited& by : awaited) {
    if (before.Covers(by.node)) waits.push_back(by.event);
  }
  return waits;
}

std::shared_ptr<GraphModel> CaptureModel::NewGraph() {
  auto graph = std::make_shared<GraphModel>();
  graph->id = ++last_graph_;
  graph->tokens.push_back(std::make_shared<const int>(0));
  return graph;
}

void CaptureModel::Begin(std::uint64_t stream, std::uint64_t graph,
                         const std::vector<std::uint64_t>& dependencies) {
  auto capture = std::make_shared<Capture>();
  capture->origin = stream;
  const auto found = graphs_.find(graph);
  // A copy, so that a failed capture leaves the graph unchanged.
  capture->graph = graph != 0 && found != graphs_.end()
                       ? std::make_shared<GraphModel>(*found->second)
                       : NewGraph();
  capture->members[stream].frontier = After(*capture->graph, dependencies);
  captures_[stream] = std::move(capture);
}

std::shared_ptr<CaptureModel::Capture> CaptureModel::Close(
    std::uint64_t origin) {
  const auto found = captures_.find(origin);
  if (found == captures_.end() || found->second->origin != origin) {
    return nullptr;
  }
  std::shared_ptr<Capture> capture = found->second;
  for (const auto& [stream, member] : capture->members) {
    captures_.erase(stream);
  }
  return capture;
}

void CaptureModel::End(std::uint64_t stream, std::uint64_t graph) {
  const std::shared_ptr<Capture> capture = Close(stream);
  if (capture != nullptr) graphs_[graph] = capture->graph;
}

void CaptureModel::Abandon(std::uint64_t stream) { Close(stream); }

void CaptureModel::Update(std::uint64_t stream,
                          const std::vector<std::uint64_t>& nodes,
                          bool replace) {
  const Place place = Find(stream);
  if (!place) return;
  if (replace) place.member->frontier = OrderClock();
  place.member->frontier.Join(After(*place.graph, nodes));
}

CaptureModel::Place CaptureModel::Find(std::uint64_t stream) {
  const auto found = captures_.find(stream);
  if (found == captures_.end()) return {};
  Capture& capture = *found->second;
  return {capture.graph.get(), &capture.members.at(stream)};
}

GraphNodeModel& CaptureModel::AddNode(const Place& place,
                                      std::uint64_t handle) {
  GraphModel& graph = *place.graph;
  Member& member = *place.member;
  const auto known = graph.by_handle.find(handle);
  if (handle != 0 && known != graph.by_handle.end() &&
      graph.nodes[known->second].epoch == member.last) {
    return graph.nodes[known->second];
  }
  // A chain continues only with a node that comes after the whole chain.
  const bool goes_on =
      member.chain != kNoChain &&
      member.frontier.At(member.chain) == graph.chains[member.chain];
  if (!goes_on) {
    member.chain = static_cast<std::uint32_t>(graph.chains.size());
    graph.chains.push_back(0);
  }
  GraphNodeModel node;
  node.before = member.frontier;
  node.epoch = {member.chain, ++graph.chains[member.chain]};
  member.frontier.Raise(node.epoch.component, node.epoch.count);
  member.last = node.epoch;
  if (handle != 0) graph.by_handle[handle] = graph.nodes.size();
  graph.nodes.push_back(std::move(node));
  return graph.nodes.back();
}

void CaptureModel::Record(std::uint64_t event, std::uint64_t stream) {
  const auto found = captures_.find(stream);
  if (found == captures_.end()) return;
  events_[event] = {found->second, found->second->members.at(stream).frontier};
}

bool CaptureModel::IsCaptured(std::uint64_t event) const {
  return events_.count(event) != 0;
}

bool CaptureModel::Join(std::uint64_t stream, std::uint64_t event) {
  const CapturedEvent& captured = events_.at(event);
  const std::shared_ptr<Capture> capture = captured.capture.lock();
  if (capture == nullptr) return false;
  captures_.emplace(stream, capture);
  capture->members[stream].frontier.Join(captured.frontier);
  return true;
}

GraphModel* CaptureModel::FindGraph(std::uint64_t graph) {
  const auto found = graphs_.find(graph);
  return found == graphs_.end() ? nullptr : found->second.get();
}

void CaptureModel::CreateGraph(std::uint64_t graph) {
  graphs_[graph] = NewGraph();
}

ExecModel* CaptureModel::FindExec(std::uint64_t exec) {
  const auto found = execs_.find(exec);
  return found == execs_.end() ? nullptr : &found->second;
}

}  // namespace strata::check
