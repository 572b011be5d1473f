// Captures, graphs and their launches.

#include <algorithm>
#include <utility>

#include "strata/platform/check/hazard_checker.h"

namespace strata::check {

std::vector<std::uint64_t> HazardChecker::TakeDependencies(
    std::uint64_t thread) {
  return std::exchange(dependencies_[thread], {});
}

bool HazardChecker::ObserveCapture(const CallRecord& record) {
  const std::uint64_t stream = record.stream_uid;
  switch (record.call) {
    case DeviceCall::kDependency:
      dependencies_[record.thread].push_back(record.ptr);
      return true;
    case DeviceCall::kStreamBeginCapture:
      captures_.Begin(stream, 0, {});
      return true;
    case DeviceCall::kStreamBeginCaptureToGraph:
      captures_.Begin(stream, record.ptr, TakeDependencies(record.thread));
      return true;
    case DeviceCall::kStreamEndCapture:
      captures_.End(stream, record.ptr);
      return true;
    case DeviceCall::kStreamUpdateCaptureDependencies:
      captures_.Update(stream, TakeDependencies(record.thread),
                       record.value != 0);
      return true;
    default:
      return false;
  }
}

bool HazardChecker::ObserveGraphs(const CallRecord& record) {
  ExecModel* exec = nullptr;
  switch (record.call) {
    case DeviceCall::kGraphCreate:
      captures_.CreateGraph(record.ptr);
      return true;
    case DeviceCall::kGraphDestroy:
      captures_.DestroyGraph(record.ptr);
      return true;
    case DeviceCall::kGraphInstantiate:
      Instantiate(&captures_.CreateExec(record.ptr), record.value);
      return true;
    case DeviceCall::kGraphExecUpdate:
      exec = captures_.FindExec(record.ptr);
      if (exec != nullptr) Instantiate(exec, record.value);
      return true;
    case DeviceCall::kGraphExecDestroy:
      captures_.DestroyExec(record.ptr);
      return true;
    case DeviceCall::kGraphLaunch:
      exec = captures_.FindExec(record.ptr);
      if (exec == nullptr) {
        Use(record, {});  // created before the records began
      } else {
        Launch(exec, record);
      }
      return true;
    default:
      return false;
  }
}

void HazardChecker::UseInCapture(const CaptureModel::Place& place,
                                 const CallRecord& record,
                                 const std::vector<Range>& ranges) {
  GraphModel& graph = *place.graph;
  const GraphNodeModel* added = &CaptureModel::AddNode(place, record.node);
  const auto node = static_cast<std::size_t>(added - graph.nodes.data());
  for (const Range& range : ranges) {
    if (memory_.FindGone(range.ptr, range.bytes) != nullptr) {
      NodeUse gone;
      gone.ptr = range.ptr;
      gone.bytes = range.bytes;
      gone.write = range.write;
      gone.access = now_;
      graph.nodes[node].uses.push_back(gone);
    }
    for (const MemoryMap::Piece& piece :
         memory_.Pieces(range.ptr, range.bytes)) {
      UsePieceInCapture(&graph, piece, range.write, node);
    }
  }
}

void HazardChecker::UsePieceInCapture(GraphModel* graph,
                                      const MemoryMap::Piece& piece, bool write,
                                      std::size_t node) {
  shadow_.VisitPiece(
      piece, [&](MemorySegment& segment, const ReportedRange& range) {
        NodeUse use;
        use.ptr = range.ptr;
        use.bytes = range.bytes;
        use.write = write;
        use.access = now_;
        use.region = piece.region;
        use.life = segment.life;
        use.capture = graph->id;
        use.was_freed = use.life != nullptr && use.life->freed.has_value();
        CheckNodeUse(graph, graph->nodes[node], use);
        graph->nodes[node].uses.push_back(std::move(use));
      });
}

void HazardChecker::CheckNodeUse(GraphModel* graph, const GraphNodeModel& node,
                                 const NodeUse& use) {
  const auto later = [graph](HazardReport report) {
    graph->hazards.push_back(std::move(report));
  };
  const ReportedRange range{use.ptr, use.bytes};
  const MemoryRegion& region = *use.region;
  const auto report = [&](HazardKind kind, const AccessSite& first,
                          const char* missing, const Lifetime& life) {
    HazardReport found = Report(kind, first, range, missing, life);
    found.second = use.access;
    later(std::move(found));
  };
  if (region.kind == RegionKind::kGraph && region.graph == graph->id) {
    if (!node.before.Covers(region.node)) {
      report(HazardKind::kUseBeforeAlloc, region.life.allocated,
             "the node is no descendant of the one that allocates",
             region.life);
    }
    if (region.freed_in_graph) {
      report(HazardKind::kGraphUseAfterFree, *region.life.freed,
             "the node is no ancestor of the one that frees", region.life);
    }
  }
  if (use.was_freed && use.life->capture == graph->id) {
    report(HazardKind::kGraphUseAfterFree, *use.life->freed,
           "the block was freed before the node was captured", *use.life);
  }
  const MemoryUse as_use{node.epoch, use.life, region.id, use.write,
                         use.access};
  const std::uint64_t begin = region.offset + (use.ptr - region.life.ptr);
  graph->shadow.VisitRange(
      region.space, begin, begin + use.bytes,
      [&](MemorySegment& segment, std::uint64_t, std::uint64_t) {
        CheckUse(segment, as_use, node.before, range, later);
        segment.Add(as_use);
      });
}

void HazardChecker::AllocateInCapture(const CaptureModel::Place& place,
                                      const CallRecord& record) {
  GraphModel& graph = *place.graph;
  const Epoch node = CaptureModel::AddNode(place, record.node).epoch;
  // The driver orders nodes that share addresses: P16.
  shadow_.Erase(0, record.ptr, record.ptr + record.bytes);
  graph.shadow.Erase(0, record.ptr, record.ptr + record.bytes);
  const auto region =
      memory_.Add(RegionKind::kGraph, record.ptr, record.bytes, now_);
  region->graph = graph.id;
  region->node = node;
  graph.allocates.push_back(region);
}

void HazardChecker::FreeInCapture(const CaptureModel::Place& place,
                                  const CallRecord& record) {
  GraphModel& graph = *place.graph;
  const GraphNodeModel& node = CaptureModel::AddNode(place, record.node);
  const std::shared_ptr<MemoryRegion> region = memory_.Find(record.ptr);
  if (region == nullptr) return;
  const std::uint64_t first = region->offset;
  const std::uint64_t last = first + region->life.bytes;
  graph.shadow.VisitKnown(
      region->space, first, last,
      [&](const MemorySegment& segment, std::uint64_t, std::uint64_t) {
        CheckGivenBack(segment, now_, node.before,
                       HazardKind::kGraphUseAfterFree, region->id,
                       {region->life.ptr, region->life.bytes},
                       [&](HazardReport report) {
                         report.first_life = region->life;
                         graph.hazards.push_back(std::move(report));
                       });
      });
  if (region->graph == graph.id) {
    region->freed_in_graph = true;
    region->life.freed = now_;
  } else {
    graph.frees.push_back(region);
  }
}

void HazardChecker::Instantiate(ExecModel* exec, std::uint64_t graph) {
  GraphModel* from = captures_.FindGraph(graph);
  if (from == nullptr) return;
  exec->Take(*from);
  for (HazardReport& report : std::exchange(from->hazards, {})) {
    log_.Add(std::move(report));
  }
}

void HazardChecker::Launch(ExecModel* exec, const CallRecord& record) {
  const StreamName stream{record.device, record.stream_uid};
  // Launches of one graph are ordered: R6.
  order_.Order(stream, exec->launched);
  const OrderClock first = order_.BeforeNext(stream, record.thread);
  std::vector<Epoch> epochs;  // by stage
  for (std::size_t i = 0; i <= exec->recorded.size(); ++i) {
    epochs.push_back(order_.Submit(stream, record.thread));
  }
  const OrderClock own = order_.OfStream(stream);
  for (const auto& region : exec->allocates) {
    if (region->freed_in_graph) continue;
    // A successful launch first frees the remaining memory of the previous
    // launch: P14.
    if (region->begins) {
      GiveBackRegion(region, HazardKind::kUseAfterFree, first);
    }
    region->begins = epochs[exec->StageOf(region->node)];
    region->life.freed.reset();
  }
  for (const NodeUse& use : exec->uses) {
    const Epoch& epoch = epochs[use.stage];
    if (use.waits.empty()) {
      LaunchUse(*exec, use, epoch, own);  // without a copy
    } else {
      LaunchUse(*exec, use, epoch, AfterEvents(own, use.waits));
    }
  }
  std::vector<OrderClock> recorded;  // the waits cover earlier records only
  for (std::size_t i = 0; i < exec->recorded.size(); ++i) {
    recorded.push_back(AfterEvents(first, exec->recorded[i].waits));
    recorded.back().Raise(epochs[i].component, epochs[i].count);
  }
  for (const ExecModel::Awaited& by : exec->awaited) {
    order_.Wait(stream, by.event, record.thread);
  }
  exec->launched = order_.OfStream(stream);
  for (const auto& region : exec->frees) {
    GiveBackRegion(region, HazardKind::kUseAfterFree, exec->launched);
  }
  for (std::size_t i = 0; i < recorded.size(); ++i) {
    captures_.ForgetEvent(exec->recorded[i].event);
    order_.Record(exec->recorded[i].event, std::move(recorded[i]));
  }
}

OrderClock HazardChecker::AfterEvents(
    OrderClock clock, const std::vector<std::uint64_t>& events) const {
  for (const std::uint64_t event : events) order_.JoinEvent(event, &clock);
  return clock;
}

void HazardChecker::LaunchUse(const ExecModel& exec, const NodeUse& use,
                              const Epoch& epoch, const OrderClock& before) {
  const ReportedRange range{use.ptr, use.bytes};
  const auto pieces = memory_.Pieces(use.ptr, use.bytes);
  std::uint64_t there = 0;
  for (const MemoryMap::Piece& piece : pieces) there += piece.bytes;
  // Memory of the graph itself belongs to the driver, which restores it at each
  // launch.
  const bool is_own = use.region != nullptr &&
                      use.region->kind == RegionKind::kGraph &&
                      use.region->graph == exec.graph;
  if (is_own) {
    for (const MemoryMap::Piece& piece : pieces) {
      if (piece.region != use.region) continue;
      const MemoryUse as_use{epoch, nullptr, piece.region->id, use.write, now_};
      shadow_.VisitPiece(piece,
                         [&](MemorySegment& segment, const ReportedRange&) {
                           segment.Add(as_use);
                         });
    }
    return;
  }
  if (there < use.bytes) {
    const auto gone = memory_.FindGone(use.ptr, use.bytes);
    HazardReport report =
        Report(HazardKind::kDanglingOperand,
               gone != nullptr ? *gone->life.freed : use.access, range,
               std::string("the graph still names memory that is gone, in ")
                   .append(ToString(use.access)));
    if (gone != nullptr) report.first_life = gone->life;
    log_.Add(std::move(report));
  }
  for (const MemoryMap::Piece& piece : pieces) {
    LaunchPiece(use, piece, epoch, before);
  }
}

const AccessSite* HazardChecker::WhyDangling(const NodeUse& use,
                                             const MemorySegment& segment) {
  if (use.life == nullptr) return nullptr;
  const bool is_eager = use.life->capture == 0;
  const std::vector<std::uint64_t>& kept_for = use.life->kept_for;
  const bool is_kept = std::find(kept_for.begin(), kept_for.end(),
                                 use.capture) != kept_for.end();
  if (use.life->freed && (use.was_freed || (is_eager && !is_kept))) {
    return &*use.life->freed;
  }
  // Private memory of the graph was allocated to a caller outside it (K1), or
  // memory that was kept for the graph was allocated again (K5).
  const std::shared_ptr<BlockLife>& now = segment.life;
  const bool is_taken = now != nullptr && now != use.life &&
                        (is_eager ? is_kept : now->capture == 0);
  return is_taken ? &now->allocated : nullptr;
}

void HazardChecker::LaunchPiece(const NodeUse& use,
                                const MemoryMap::Piece& piece,
                                const Epoch& epoch, const OrderClock& before) {
  CheckBegins(*piece.region, before);
  const bool same = piece.region == use.region;
  // A program may map new memory at the same addresses: T74.
  const bool is_remapped =
      !same && piece.region->kind == RegionKind::kMapping &&
      (use.region == nullptr || use.region->kind == RegionKind::kMapping);
  const ReportedRange range{piece.ptr, piece.bytes};
  const auto dangling = [&](const AccessSite& first, const Lifetime& life) {
    return Report(HazardKind::kDanglingOperand, first, range,
                  std::string("the graph still names the memory, in ")
                      .append(ToString(use.access)),
                  life);
  };
  if (!same && !is_remapped) {
    const MemoryRegion& old =
        use.region != nullptr ? *use.region : *piece.region;
    HazardReport report = dangling(
        old.life.freed ? *old.life.freed : piece.region->life.allocated,
        old.life);
    report.second_life = piece.region->life;
    log_.Add(std::move(report));
    return;
  }
  shadow_.VisitPiece(
      piece, [&](MemorySegment& segment, const ReportedRange& within) {
        const std::shared_ptr<BlockLife>& life =
            is_remapped ? segment.life : use.life;
        MemoryUse as_use{epoch, life, piece.region->id, use.write, now_};
        as_use.own = life != nullptr && life->capture == use.capture;
        const AccessSite* why = same ? WhyDangling(use, segment) : nullptr;
        if (why != nullptr) {
          HazardReport report = dangling(*why, *use.life);
          if (segment.life != use.life) {
            report.second_life = LifeOf(segment.life);
          }
          log_.Add(std::move(report));
        } else {
          CheckUse(segment, as_use, before, within, ToLog());
        }
        segment.Add(as_use);
      });
}

}  // namespace strata::check
