#ifndef STRATA_PLATFORM_CHECK_HAZARD_CHECKER_H_
#define STRATA_PLATFORM_CHECK_HAZARD_CHECKER_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "strata/platform/calls/call_record.h"
#include "strata/platform/check/capture_model.h"
#include "strata/platform/check/happens_before.h"
#include "strata/platform/check/memory_map.h"
#include "strata/platform/check/shadow_memory.h"
#include "strata/platform/check/use_rules.h"

namespace strata::check {

// Finds uses of device memory that lack a required order. Its only input is the
// calls of a program and the events beside them.
//
// Model: predictive. A hazard is reported if no rule of streams, events, host
//   waits and graphs orders two uses, however the work happened to run.
//   Uses are copies, fills and kUse events. Kernels of a GPU cause no event:
//   when a block is marked for a stream or freed in it, the work of that stream
//   so far counts as a use. If the mark names an event, only the work up to
//   that event counts.
//   Memory without blocks counts as one block per allocation. The checker
//   ignores the order of uses of one block, and memory that no call has
//   created.
// Threads: externally synchronised. Records come in the order in which the
//   calls took effect.
// Cost: per call and piece of memory used, linear in the streams. A launch
//   counts as one call that uses all memory of its nodes.
//   Memory: a few uses per stream, block and former block of the same bytes;
//   copies of graphs.
// Source: cuda_semantics.md §5 (rules R, M, K), §2, §3 P13-P17, §4.
class HazardChecker {
 public:
  // `handler` may be null.
  explicit HazardChecker(HazardHandler handler = nullptr);

  void Observe(const CallRecord& record);

  // The first HazardLog::kMaxKept hazards, and the number of all hazards.
  const std::vector<HazardReport>& hazards() const { return log_.kept(); }
  std::uint64_t hazard_count() const { return log_.count(); }
  std::uint64_t record_count() const { return records_; }

 private:
  using StreamName = HappensBefore::StreamName;
  // A memory range that a call uses.
  struct Range {
    std::uint64_t ptr = 0;
    std::uint64_t bytes = 0;
    bool write = false;
  };

  // Each of the next functions returns true if the call is of its kind.
  // hazard_checker.cc:
  bool ObserveStreams(const CallRecord& record);
  bool ObserveEvents(const CallRecord& record);
  void ObserveEventRecord(const CallRecord& record);
  void ObserveEventDone(const CallRecord& record);
  void ObserveWait(const CallRecord& record);
  // hazard_checker_memory.cc:
  bool ObserveMemory(const CallRecord& record);
  bool ObserveVirtual(const CallRecord& record);
  bool ObservePools(const CallRecord& record);
  bool ObserveUses(const CallRecord& record);
  // hazard_checker_blocks.cc:
  bool ObserveBlocks(const CallRecord& record);
  // hazard_checker_graphs.cc:
  bool ObserveCapture(const CallRecord& record);
  bool ObserveGraphs(const CallRecord& record);

  void Use(const CallRecord& record, const std::vector<Range>& ranges);
  void UseRange(const Range& range, const Epoch& epoch,
                const OrderClock& before);
  void UsePiece(const MemoryMap::Piece& piece, bool write, const Epoch& epoch,
                const OrderClock& before);
  // Memory of pools and graphs exists only from a point of a stream on.
  void CheckBegins(const MemoryRegion& region, const OrderClock& before);
  void GiveBack(std::uint64_t ptr, HazardKind kind, const OrderClock& before);
  void GiveBackRegion(const std::shared_ptr<MemoryRegion>& region,
                      HazardKind kind, const OrderClock& before);

  void HandOut(const CallRecord& record);
  void HandOutPiece(const MemoryMap::Piece& piece,
                    const std::shared_ptr<BlockLife>& life);
  void TakeBack(const CallRecord& record);
  void Mark(const CallRecord& record);
  // Notes that the block was freed or marked in a capture. A graph may use the
  // block until it is allocated again (K5).
  void KeepForCapture(const CallRecord& record, BlockLife& life);
  // The work so far of `record`'s stream counts as a use of the block. If a
  // mark names an event, only the work up to the event counts.
  void UseByStream(const CallRecord& record,
                   const std::shared_ptr<BlockLife>& life, bool host_too);

  std::vector<std::uint64_t> TakeDependencies(std::uint64_t thread);
  void UseInCapture(const CaptureModel::Place& place, const CallRecord& record,
                    const std::vector<Range>& ranges);
  void UsePieceInCapture(GraphModel* graph, const MemoryMap::Piece& piece,
                         bool write, std::size_t node);
  // Checks the rules among nodes of a graph. Hazards are reported at
  // instantiation.
  void CheckNodeUse(GraphModel* graph, const GraphNodeModel& node,
                    const NodeUse& use);
  void AllocateInCapture(const CaptureModel::Place& place,
                         const CallRecord& record);
  void FreeInCapture(const CaptureModel::Place& place,
                     const CallRecord& record);
  void Instantiate(ExecModel* exec, std::uint64_t graph);
  void Launch(ExecModel* exec, const CallRecord& record);
  OrderClock AfterEvents(OrderClock clock,
                         const std::vector<std::uint64_t>& events) const;
  void LaunchUse(const ExecModel& exec, const NodeUse& use, const Epoch& epoch,
                 const OrderClock& before);
  void LaunchPiece(const NodeUse& use, const MemoryMap::Piece& piece,
                   const Epoch& epoch, const OrderClock& before);
  // The access after which the node must no longer use the block that it was
  // captured with; null if it may.
  const AccessSite* WhyDangling(const NodeUse& use,
                                const MemorySegment& segment);

  // Returns a report about the current call.
  HazardReport Report(HazardKind kind, const AccessSite& first,
                      const ReportedRange& range, std::string missing,
                      std::optional<Lifetime> first_life = {}) const;
  HazardSink ToLog();

  HappensBefore order_;
  MemoryMap memory_;
  ShadowMemory shadow_;
  CaptureModel captures_;
  HazardLog log_;
  // Live blocks, by address.
  std::map<std::uint64_t, std::shared_ptr<BlockLife>> blocks_;
  // The nodes that each thread named for its next call, by thread.
  std::unordered_map<std::uint64_t, std::vector<std::uint64_t>> dependencies_;
  std::uint64_t records_ = 0;
  AccessSite now_;  // the current call
};

}  // namespace strata::check

#endif  // STRATA_PLATFORM_CHECK_HAZARD_CHECKER_H_
