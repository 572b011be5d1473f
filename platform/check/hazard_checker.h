#ifndef STRATA_PLATFORM_CHECK_HAZARD_CHECKER_H_
#define STRATA_PLATFORM_CHECK_HAZARD_CHECKER_H_

#include <cstdint>
#include <map>
#include <memory>
#include <unordered_map>
#include <vector>

#include "strata/platform/call_record.h"
#include "strata/platform/check/capture_model.h"
#include "strata/platform/check/happens_before.h"
#include "strata/platform/check/hazard_log.h"
#include "strata/platform/check/memory_map.h"
#include "strata/platform/check/shadow_memory.h"
#include "strata/platform/check/use_rules.h"

namespace strata {

// Finds uses of device memory that nothing orders as they need to be, from
// nothing but the calls that a program made and the events beside them.
//
// Model: predictive. A hazard is reported if no rule of streams, events, host
//   waits and graphs orders two uses, however the work happened to run. Uses
//   are copies, fills, kUse events, and, for what no event tells (kernels of a
//   GPU), the work of a stream at the moment a block is marked for it, or of
//   the event that the mark names, or freed in it. Memory without blocks is one
//   block per allocation. Uses of one block are the program's affair, and of
//   memory that no call has made, nobody's.
// Threads: externally synchronised; records come in the order in which the
//   calls took effect.
// Cost: per call, linear in the streams for each piece of memory used; a launch
//   counts as one call that uses all that its nodes use. Memory: a few uses per
//   stream, block and former block of the same bytes; copies of graphs.
// Source: cuda_semantics.md §5 (rules R, M, K), §2, §3 P13-P17, §4.
class HazardChecker {
 public:
  // `handler` may be null.
  explicit HazardChecker(HazardHandler handler = nullptr);

  void Observe(const CallRecord& record);

  // The first HazardLog::kMaxKept hazards, and how many there are.
  const std::vector<HazardReport>& hazards() const { return log_.kept(); }
  std::uint64_t hazard_count() const { return log_.count(); }
  std::uint64_t record_count() const { return records_; }

 private:
  using StreamName = HappensBefore::StreamName;
  // What a call uses.
  struct Range {
    std::uint64_t ptr = 0;
    std::uint64_t bytes = 0;
    bool write = false;
  };

  // Each returns whether the call was one of its kind. hazard_checker.cc:
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
  // Pool and graph memory is there only from a point on.
  void CheckBegins(const MemoryRegion& region, const OrderClock& before);
  void GiveBack(std::uint64_t ptr, HazardKind kind, const OrderClock& before);
  void GiveBackRegion(const std::shared_ptr<MemoryRegion>& region,
                      HazardKind kind, const OrderClock& before);

  void HandOut(const CallRecord& record);
  void HandOutPiece(const MemoryMap::Piece& piece,
                    const std::shared_ptr<BlockLife>& life);
  void TakeBack(const CallRecord& record);
  void Mark(const CallRecord& record);
  // Notes that the block was freed in a capture, or marked in it: a graph may
  // name it for as long as nobody else gets it (K5).
  void KeepForCapture(const CallRecord& record, BlockLife& life);
  // The work of `record`'s stream so far, or up to the event that a mark names,
  // counts as a use of the block.
  void UseByStream(const CallRecord& record,
                   const std::shared_ptr<BlockLife>& life, bool host_too);

  std::vector<std::uint64_t> TakeDependencies(std::uint64_t thread);
  void UseInCapture(const CaptureModel::Place& place, const CallRecord& record,
                    const std::vector<Range>& ranges);
  void UsePieceInCapture(GraphModel* graph, const MemoryMap::Piece& piece,
                         bool write, std::size_t node);
  // The rules among nodes of a graph; what they find waits for instantiation.
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
  // Why the block that a node was captured with is not its to use any more, or
  // null.
  const AccessSite* WhyDangling(const NodeUse& use,
                                const MemorySegment& segment);

  // A hazard of the present call.
  HazardReport Report(HazardKind kind, const AccessSite& first,
                      const ReportedRange& range, std::string missing) const;
  HazardSink ToLog();

  HappensBefore order_;
  MemoryMap memory_;
  ShadowMemory shadow_;
  CaptureModel captures_;
  HazardLog log_;
  // Blocks that are handed out, by address.
  std::map<std::uint64_t, std::shared_ptr<BlockLife>> blocks_;
  // The nodes that each thread named for its next call.
  std::unordered_map<std::uint64_t, std::vector<std::uint64_t>> dependencies_;
  std::uint64_t records_ = 0;
  AccessSite now_;  // the present call
};

}  // namespace strata

#endif  // STRATA_PLATFORM_CHECK_HAZARD_CHECKER_H_
