#include "strata/tools/readers/snapshot/pytorch_snapshot.h"

#include <algorithm>
#include <limits>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "strata/base/quoted.h"
#include "strata/tools/readers/pickle/pickle_reader.h"
#include "strata/tools/readers/snapshot/snapshot_entries.h"
#include "strata/tools/readers/snapshot/snapshot_fields.h"
#include "strata/tools/readers/snapshot/snapshot_history.h"
#include "strata/tools/readers/snapshot/snapshot_layout.h"
#include "strata/tools/trace/trace_builder.h"

namespace strata::tools {
namespace {

using Action = SnapshotEntry::Action;

PickleOptions SnapshotPickle(bool strict) {
  PickleOptions options;
  options.keys = {"device_traces",  "segments",     "action", "addr",
                  "size",           "stream",       "device", "address",
                  "requested_size", "state",        "blocks", "total_size",
                  "device_free",    "is_expandable"};
  options.counted_keys = {"frames"};
  options.allows_objects = !strict;
  return options;
}

class SnapshotReader {
 public:
  SnapshotReader(InputBuffer& input, std::optional<std::uint64_t> device,
                 bool strict)
      : path_(input.path()),
        tree_(ReadPickle(input, SnapshotPickle(strict))),
        fields_(tree_),
        builder_(path_, Trace::Unit::kEntry, strict) {
    RequireSnapshot();
    SkipForeign();
    read_ = ReadSnapshotEntries(FindEntries(device), fields_, builder_);
  }

  Trace Read() {
    const SnapshotFrees frees(read_.entries);
    before_ = frees.before();
    ReadSegments(frees);
    const SnapshotHistory history =
        ReadHistory(read_.entries, reserved_at_end_);
    AllocateBefore();
    auto segments = RecordedSegments();
    auto release = history.releases.begin();
    for (std::size_t i = 0; i < read_.entries.size(); ++i) {
      if (release != history.releases.end() && *release == i) {
        builder_.Release(i + 1);
        ++release;
      }
      Replay(i + 1, read_.entries[i]);
    }
    Trace trace = builder_.Finish();
    trace.recorded = history.recorded;
    trace.recorded.segments = std::move(segments);
    trace.blocks_before = before_.size();
    trace.has_lost_entries = has_lost_entries_;
    trace.blocks_after = blocks_after_;
    trace.devices_skipped = devices_skipped_;
    trace.frees_completed = frees.completed();
    return trace;
  }

 private:
  [[noreturn]] void Fail(const std::string& reason) const {
    std::string text = reason;
    if (tree_.objects() != 0) text.append("; ").append(tree_.first_object());
    throw TraceError(path_, 0, text);
  }

  // --- The file ----------------------------------------------------------

  void RequireSnapshot() const {
    const PickleValue root = tree_.root();
    if (root.kind == PickleValue::Kind::kDict) return;
    const std::vector<PickleValue>* items = fields_.ListOf(root);
    if (items != nullptr && !items->empty() &&
        fields_.List(items->front(), "blocks") != nullptr) {
      Fail(
          "this is the list of segments that torch.cuda.memory_snapshot() "
          "returns, "
          "which has no history; torch.cuda.memory._record_memory_history() "
          "records one, and torch.cuda.memory._dump_snapshot() writes it");
    }
    Fail("a memory snapshot is a dict, this is " +
         std::string(PickleKindName(root.kind)));
  }

  void SkipForeign() {
    if (tree_.objects() != 0) {
      builder_.Skip(SkipKind::kForeignObject, 0, tree_.first_object(),
                    tree_.objects());
    }
    builder_.CountBytes(tree_.bytes());
    if (tree_.trailing_bytes() != 0) {
      builder_.Skip(SkipKind::kTrailingBytes, 0,
                    "more data after the end of the pickle",
                    tree_.trailing_bytes());
    }
  }

  // --- Entries -----------------------------------------------------------

  const std::vector<PickleValue>& FindEntries(
      std::optional<std::uint64_t> device) {
    const auto* devices = fields_.List(tree_.root(), "device_traces");
    if (devices == nullptr) {
      Fail(fields_.Problem(tree_.root(), "device_traces", "a list"));
    }
    const std::vector<PickleValue>* found = nullptr;
    std::string names;
    for (std::size_t i = 0; i < devices->size(); ++i) {
      const auto* entries = fields_.ListOf((*devices)[i]);
      if (entries == nullptr || entries->empty()) continue;
      names.append(names.empty() ? "" : ", ").append(std::to_string(i));
      if (found != nullptr || device.value_or(i) != i) {
        ++devices_skipped_;
        continue;
      }
      found = entries;
      device_ = i;
    }
    if (device) devices_skipped_ = 0;
    if (found != nullptr) return *found;
    if (names.empty()) {
      Fail(
          "no entries: the program did not call "
          "torch.cuda.memory._record_memory_history() before it allocated");
    }
    Fail("no entries of device " + std::to_string(*device) +
         "; those with entries: " + names);
  }

  // --- Blocks live before the first entry --------------------------------

  void AllocateBefore() {
    std::sort(before_.begin(), before_.end(),
              [](const SnapshotBlock& a, const SnapshotBlock& b) {
                return a.address < b.address;
              });
    for (const SnapshotBlock& block : before_) {
      builder_.Allocate(1, block.address, block.bytes, block.stream);
    }
  }

  // The segments before the first entry, if they are known.
  std::vector<Trace::RecordedSegment> RecordedSegments() {
    std::vector<Trace::RecordedSegment> result;
    if (!reserved_at_end_ || read_.is_expandable) return result;
    std::size_t blocks = 0;
    for (const SnapshotSegment& segment :
         SegmentsBefore(read_.entries, segments_, before_)) {
      Trace::RecordedSegment& recorded = result.emplace_back();
      recorded.bytes = segment.bytes;
      recorded.stream = builder_.StreamIndex(1, segment.stream);
      for (const SnapshotBlock& block : segment.blocks) {
        recorded.blocks.push_back(
            {block.address - segment.address, block.size});
      }
      blocks += segment.blocks.size();
    }
    // A block that was skipped has no event.
    if (blocks != builder_.events()) result.clear();
    return result;
  }

  void Replay(std::uint64_t number, const SnapshotEntry& entry) {
    switch (entry.action) {
      case Action::kAllocate:
        return builder_.Allocate(number, entry.address, entry.bytes,
                                 entry.stream);
      case Action::kFree:
        return builder_.Free(number, entry.address,
                             IfKnown(entry.has_bytes, entry.bytes),
                             IfKnown(entry.has_stream, entry.stream));
      case Action::kOutOfMemory:
        if (!entry.has_bytes) return builder_.SkipFailure();
        return builder_.Try(number, entry.bytes, entry.stream);
      default:
        return;
    }
  }

  static std::optional<std::uint64_t> IfKnown(bool is_known,
                                              std::uint64_t value) {
    if (!is_known) return std::nullopt;
    return value;
  }

  // --- Segments ----------------------------------------------------------

  void ReadSegments(const SnapshotFrees& frees) {
    const auto* segments = fields_.List(tree_.root(), "segments");
    if (segments == nullptr) {
      return builder_.Skip(SkipKind::kBadValue, 0,
                           fields_.Problem(tree_.root(), "segments", "a list"));
    }
    reserved_at_end_ = 0;
    std::unordered_set<std::uint64_t> addresses;
    for (std::size_t i = 0; i < segments->size(); ++i) {
      const std::string where = "segment " + std::to_string(i + 1) + ": ";
      const PickleValue segment = (*segments)[i];
      const auto device = fields_.Number(segment, "device");
      if (!device) {
        SkipPart(segment, "device", "an int", where);
      } else if (*device == device_) {
        ReadSegment(segment, where, frees, addresses);
      }
    }
    if (!read_.has_segments) reserved_at_end_.reset();
  }

  void ReadSegment(PickleValue segment, const std::string& where,
                   const SnapshotFrees& frees,
                   std::unordered_set<std::uint64_t>& addresses) {
    builder_.CountRow();
    const auto address = fields_.Number(segment, "address");
    if (!address) return SkipPart(segment, "address", "an int", where);
    // Many segments with one list of blocks would take endless time.
    if (!addresses.insert(*address).second) {
      return builder_.Skip(SkipKind::kBadValue, 0,
                           where + "its address is that of another");
    }
    const auto bytes = fields_.Number(segment, "total_size");
    const bool has_end =
        bytes && *bytes <= std::numeric_limits<std::uint64_t>::max() - *address;
    if (!has_end) read_.has_segments = false;
    *reserved_at_end_ += bytes.value_or(0);
    const PickleValue* expandable = tree_.Find(segment, "is_expandable");
    if (expandable != nullptr && expandable->kind == PickleValue::Kind::kBool &&
        expandable->number != 0) {
      read_.is_expandable = true;
    }
    const auto stream = fields_.Number(segment, "stream");
    if (!stream) return SkipPart(segment, "stream", "an int", where);
    segments_.push_back({*address, bytes.value_or(0), *stream, {}});
    const auto* blocks = fields_.List(segment, "blocks");
    if (blocks == nullptr) return SkipPart(segment, "blocks", "a list", where);
    ReadBlocks(*blocks, {*address, 0, *stream, 0}, frees, where);
  }

  // `at`: address of the first block, and its stream.
  void ReadBlocks(const std::vector<PickleValue>& blocks, SnapshotBlock at,
                  const SnapshotFrees& frees,
                  const std::string& where_segment) {
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      builder_.CountRow();
      const std::string where =
          where_segment + "block " + std::to_string(i + 1) + ": ";
      const PickleValue block = blocks[i];
      const auto size = fields_.Number(block, "size");
      // The address of the next block depends on the size.
      if (!size) return SkipPart(block, "size", "an int", where);
      at.size = *size;
      // Early versions omit both.
      at.address = fields_.Number(block, "address").value_or(at.address);
      at.bytes = fields_.Number(block, "requested_size").value_or(*size);
      if (IsAllocated(block, where)) VisitLiveBlock(at, block, frees);
      if (*size > std::numeric_limits<std::uint64_t>::max() - at.address) {
        return builder_.Skip(SkipKind::kBadValue, 0,
                             where + "its end exceeds 64 bits");
      }
      at.address += *size;
    }
  }

  // The program has freed a block that waits for an event.
  bool IsAllocated(PickleValue block, const std::string& where) {
    const auto state = fields_.Text(block, "state");
    if (!state) {
      SkipPart(block, "state", "a text", where);
      return false;
    }
    if (*state == "active_allocated") return true;
    for (const char* other :
         {"inactive", "active_pending_free", "active_awaiting_free"}) {
      if (*state == other) return false;
    }
    builder_.Skip(SkipKind::kUnknownState, 0,
                  where + "unknown state " + Quoted(*state));
    return false;
  }

  void VisitLiveBlock(const SnapshotBlock& block, PickleValue value,
                      const SnapshotFrees& frees) {
    if (const auto state = frees.StateOf(block.address)) {
      if (*state != SnapshotFrees::State::kLive) ++blocks_after_;
      return;
    }
    if (!found_.insert(block.address).second) return;
    before_.push_back(block);
    if (fields_.Frames(value) != 0) has_lost_entries_ = true;
  }

  // `where` names a segment or block.
  void SkipPart(PickleValue value, const char* key, const char* expected,
                const std::string& where) {
    builder_.Skip(SkipKind::kBadValue, 0,
                  where + fields_.Problem(value, key, expected));
  }

  const std::string path_;
  const PickleTree tree_;
  const SnapshotFields fields_;
  TraceBuilder builder_;
  SnapshotEntries read_;  // entries of device_
  std::uint64_t device_ = 0;
  std::vector<SnapshotBlock> before_;
  // Addresses of live blocks without an entry.
  std::unordered_set<std::uint64_t> found_;
  // Bytes of the segments; nothing if a segment has no size.
  std::optional<std::uint64_t> reserved_at_end_;
  // segments of device_, without blocks
  std::vector<SnapshotSegment> segments_;
  bool has_lost_entries_ = false;
  std::uint64_t blocks_after_ = 0;
  std::uint64_t devices_skipped_ = 0;
};

}  // namespace

Trace ReadPytorchSnapshot(InputBuffer& input,
                          std::optional<std::uint64_t> device, bool strict) {
  return SnapshotReader(input, device, strict).Read();
}

}  // namespace strata::tools
