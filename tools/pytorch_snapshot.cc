#include "strata/tools/pytorch_snapshot.h"

#include <algorithm>
#include <limits>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "strata/platform/quoted.h"
#include "strata/tools/pickle_reader.h"
#include "strata/tools/trace_builder.h"

namespace strata {
namespace {

using PickleKind = PickleValue::Kind;

PickleOptions KeptKeys() {
  PickleOptions options;
  options.keys = {"device_traces",  "segments", "action", "addr",
                  "size",           "stream",   "device", "address",
                  "requested_size", "state",    "blocks"};
  options.counted_keys = {"frames"};
  return options;
}

struct SnapshotBlock {
  std::uint64_t address = 0;
  std::uint64_t bytes = 0;
  std::uint64_t stream = 0;
};

class SnapshotReader {
 public:
  SnapshotReader(InputBuffer& input, std::optional<std::uint64_t> device)
      : path_(input.path()),
        tree_(ReadPickle(input, KeptKeys())),
        builder_(path_, Trace::Unit::kEntry) {
    if (tree_.root().kind != PickleKind::kDict) {
      Fail("a memory snapshot is a dict, this is " +
           std::string(PickleKindName(tree_.root().kind)));
    }
    FindEntries(device);
  }

  Trace Read() {
    FindBlocksFreedOnly();
    FindBlocksNeverFreed();
    std::sort(before_.begin(), before_.end(),
              [](const SnapshotBlock& a, const SnapshotBlock& b) {
                return a.address < b.address;
              });
    for (const SnapshotBlock& block : before_) {
      builder_.Allocate(1, block.address, block.bytes, block.stream);
    }
    std::uint64_t number = 0;
    for (const PickleValue entry : *entries_) Replay(++number, entry);
    Trace trace = builder_.Finish();
    trace.blocks_before = before_.size();
    trace.has_lost_entries = has_lost_entries_;
    trace.blocks_after = blocks_after_;
    trace.devices_skipped = devices_skipped_;
    return trace;
  }

 private:
  enum class Action { kAllocate, kFree, kFailure, kOther };

  [[noreturn]] void Fail(const std::string& reason) const {
    throw TraceError(path_, 0, reason);
  }

  // --- Values, by what they are in: "entry 7: no size" -------------------

  const std::vector<PickleValue>& List(PickleValue dict, const char* key,
                                       const std::string& where) const {
    const PickleValue* value = tree_.Find(dict, key);
    if (value == nullptr) Fail(where + "no " + key);
    return ListOf(*value, where + key + " is ");
  }

  const std::vector<PickleValue>& ListOf(PickleValue value,
                                         const std::string& is) const {
    if (value.kind != PickleKind::kList && value.kind != PickleKind::kTuple) {
      Fail(is + PickleKindName(value.kind) + ", not a list");
    }
    // It was also the value of a key that nobody reads.
    if (tree_.DroppedItems(value) != 0) Fail(is + "part of something else");
    return tree_.Items(value);
  }

  // Throws for a missing or wrong value; the text is made only then.
  template <class Where>
  std::uint64_t Number(PickleValue dict, const char* key,
                       const Where& where) const {
    const PickleValue* value = tree_.Find(dict, key);
    if (value == nullptr) Fail(where() + "no " + key);
    if (value->kind == PickleKind::kUnsigned) return value->number;
    if (value->kind == PickleKind::kNegative) {
      Fail(where() + key + " is negative");
    }
    if (value->kind == PickleKind::kHuge) {
      Fail(where() + key + " exceeds 64 bits");
    }
    Fail(where() + key + " is " + PickleKindName(value->kind) + ", not an int");
  }

  template <class Where>
  std::string_view Text(PickleValue dict, const char* key,
                        const Where& where) const {
    if (dict.kind != PickleKind::kDict) {
      Fail(where() + PickleKindName(dict.kind) + " instead of a dict");
    }
    const PickleValue* value = tree_.Find(dict, key);
    if (value == nullptr) Fail(where() + "no " + key);
    if (value->kind != PickleKind::kText) {
      Fail(where() + key + " is " + PickleKindName(value->kind) +
           ", not a text");
    }
    return tree_.Text(*value);
  }

  // --- Entries -----------------------------------------------------------

  void FindEntries(std::optional<std::uint64_t> device) {
    const auto& devices = List(tree_.root(), "device_traces", "");
    std::string names;
    std::uint64_t count = 0;
    for (std::size_t i = 0; i < devices.size(); ++i) {
      const auto& entries = ListOf(
          devices[i], "device_traces: device " + std::to_string(i) + " is ");
      if (entries.empty()) continue;
      names += names.empty() ? "" : ", ";
      names += std::to_string(i);
      ++count;
      if (entries_ == nullptr && device.value_or(i) == i) {
        entries_ = &entries;
        device_ = i;
      }
    }
    if (entries_ != nullptr) {
      if (!device) devices_skipped_ = count - 1;
      return;
    }
    if (names.empty()) {
      Fail("no entries: the memory history was not recorded");
    }
    Fail("no entries of device " + std::to_string(*device) +
         "; those with entries: " + names);
  }

  Action ActionOf(std::uint64_t number, PickleValue entry) const {
    const auto where = [&] { return EntryName(number); };
    const std::string_view action = Text(entry, "action", where);
    if (action == "alloc") return Action::kAllocate;
    if (action == "free_requested") return Action::kFree;
    if (action == "oom") return Action::kFailure;
    for (const char* other :
         {"free_completed", "segment_alloc", "segment_free", "segment_map",
          "segment_unmap", "snapshot", "user_defined"}) {
      if (action == other) return Action::kOther;
    }
    Fail(where() + "unknown action " + Quoted(action));
  }

  SnapshotBlock BlockOf(std::uint64_t number, PickleValue entry) const {
    const auto where = [&] { return EntryName(number); };
    return {Number(entry, "addr", where), Number(entry, "size", where),
            Number(entry, "stream", where)};
  }

  static std::string EntryName(std::uint64_t number) {
    return "entry " + std::to_string(number) + ": ";
  }

  void Replay(std::uint64_t number, PickleValue entry) {
    const Action action = ActionOf(number, entry);
    if (action == Action::kFailure) builder_.SkipFailure();
    if (action != Action::kAllocate && action != Action::kFree) return;
    const SnapshotBlock block = BlockOf(number, entry);
    if (action == Action::kAllocate) {
      builder_.Allocate(number, block.address, block.bytes, block.stream);
    } else {
      builder_.Free(number, block.address, block.bytes, block.stream);
    }
  }

  // --- Blocks live before the first entry --------------------------------

  // Of each address the first entry decides: a free needs a block.
  void FindBlocksFreedOnly() {
    std::uint64_t number = 0;
    for (const PickleValue entry : *entries_) {
      ++number;
      const Action action = ActionOf(number, entry);
      if (action != Action::kAllocate && action != Action::kFree) continue;
      const SnapshotBlock block = BlockOf(number, entry);
      const auto [live, is_first] = is_live_.try_emplace(block.address);
      if (is_first && action == Action::kFree) before_.push_back(block);
      live->second = action == Action::kAllocate;
    }
  }

  void FindBlocksNeverFreed() {
    const auto& segments = List(tree_.root(), "segments", "");
    std::unordered_set<std::uint64_t> addresses;
    for (std::size_t i = 0; i < segments.size(); ++i) {
      const auto where = [&] {
        return "segment " + std::to_string(i + 1) + ": ";
      };
      if (segments[i].kind != PickleKind::kDict) {
        Fail(where() + PickleKindName(segments[i].kind) + " instead of a dict");
      }
      if (Number(segments[i], "device", where) != device_) continue;
      const std::uint64_t address = Number(segments[i], "address", where);
      // One list of blocks under many segments would take time without end.
      if (!addresses.insert(address).second) {
        Fail(where() + "its address is that of another");
      }
      VisitBlocks(segments[i], address, where);
    }
  }

  template <class Where>
  void VisitBlocks(PickleValue segment, std::uint64_t address,
                   const Where& where_segment) {
    const std::uint64_t stream = Number(segment, "stream", where_segment);
    const auto& blocks = List(segment, "blocks", where_segment());
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      const auto where = [&] {
        return where_segment() + "block " + std::to_string(i + 1) + ": ";
      };
      const bool is_live = IsAllocated(Text(blocks[i], "state", where), where);
      const std::uint64_t size = Number(blocks[i], "size", where);
      // Early versions leave both out.
      if (tree_.Find(blocks[i], "address") != nullptr) {
        address = Number(blocks[i], "address", where);
      }
      const bool has_request =
          tree_.Find(blocks[i], "requested_size") != nullptr;
      const std::uint64_t bytes =
          has_request ? Number(blocks[i], "requested_size", where) : size;
      if (is_live) VisitLiveBlock({address, bytes, stream}, blocks[i], where);
      if (size > std::numeric_limits<std::uint64_t>::max() - address) {
        Fail(where() + "its end exceeds 64 bits");
      }
      address += size;
    }
  }

  // A block that waits for an event has been freed by the program.
  template <class Where>
  bool IsAllocated(std::string_view state, const Where& where) const {
    if (state == "active_allocated") return true;
    for (const char* other :
         {"inactive", "active_pending_free", "active_awaiting_free"}) {
      if (state == other) return false;
    }
    Fail(where() + "unknown state " + Quoted(state));
  }

  template <class Where>
  void VisitLiveBlock(const SnapshotBlock& block, PickleValue value,
                      const Where& where) {
    const auto [live, is_new] = is_live_.try_emplace(block.address, true);
    if (!is_new) {
      if (!live->second) ++blocks_after_;
      return;
    }
    before_.push_back(block);
    const PickleValue* frames = tree_.Find(value, "frames");
    if (frames == nullptr) return;
    if (frames->kind != PickleKind::kList) {
      Fail(where() + "frames is " + PickleKindName(frames->kind) +
           ", not a list");
    }
    if (tree_.DroppedItems(*frames) > 0) has_lost_entries_ = true;
  }

  const std::string path_;
  const PickleTree tree_;
  TraceBuilder builder_;
  const std::vector<PickleValue>* entries_ = nullptr;  // of device_
  std::uint64_t device_ = 0;
  // Whether what was last allocated at an address is live at the end.
  std::unordered_map<std::uint64_t, bool> is_live_;
  std::vector<SnapshotBlock> before_;
  bool has_lost_entries_ = false;
  std::uint64_t blocks_after_ = 0;
  std::uint64_t devices_skipped_ = 0;
};

}  // namespace

Trace ReadPytorchSnapshot(InputBuffer& input,
                          std::optional<std::uint64_t> device) {
  return SnapshotReader(input, device).Read();
}

}  // namespace strata
