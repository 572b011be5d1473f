#include "strata/tools/readers/snapshot/snapshot_entries.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "strata/base/quoted.h"

namespace strata::tools {
namespace {

using Action = SnapshotEntry::Action;

// Nothing if no known version writes this name.
std::optional<Action> ActionNamed(std::string_view name) {
  using Named = std::pair<std::string_view, Action>;
  static constexpr Named kActions[] = {
      {"alloc", Action::kAllocate},
      {"free_requested", Action::kFree},
      {"free_completed", Action::kFreeCompleted},
      {"oom", Action::kOutOfMemory},
      {"segment_alloc", Action::kSegmentAllocate},
      {"segment_map", Action::kSegmentAllocate},
      {"segment_free", Action::kSegmentFree},
      {"segment_unmap", Action::kSegmentFree},
      {"snapshot", Action::kOther},
      {"user_defined", Action::kOther},
      {"annotate", Action::kOther}};
  for (const auto& [known, action] : kActions) {
    if (known == name) return action;
  }
  return std::nullopt;
}

class EntriesReader {
 public:
  EntriesReader(const SnapshotFields& fields, TraceBuilder& builder)
      : fields_(fields), builder_(builder) {}

  SnapshotEntries Read(const std::vector<PickleValue>& values) {
    result_.entries.reserve(values.size());
    for (const PickleValue value : values) {
      builder_.CountRow();
      result_.entries.emplace_back();
      ReadEntry(result_.entries.size(), value);
    }
    return std::move(result_);
  }

 private:
  void ReadEntry(std::uint64_t number, PickleValue value) {
    const auto name = fields_.Text(value, "action");
    if (!name) return Skip(number, value, "action", "a text");
    const auto action = ActionNamed(*name);
    if (!action) {
      return builder_.Skip(SkipKind::kUnknownAction, number,
                           "unknown action " + Quoted(*name));
    }
    const SnapshotEntry entry = EntryOf(value, *action);
    if (!IsUsable(number, value, entry)) return;
    result_.entries.back() = entry;
    NoteSegment(entry, *name == "segment_map" || *name == "segment_unmap");
  }

  SnapshotEntry EntryOf(PickleValue value, Action action) const {
    const auto read = [&](const char* key, std::uint64_t& number) {
      const auto found = fields_.Number(value, key);
      number = found.value_or(0);
      return found.has_value();
    };
    const bool is_failure = action == Action::kOutOfMemory;
    SnapshotEntry entry;
    entry.action = action;
    entry.has_address =
        read(is_failure ? "device_free" : "addr", entry.address);
    entry.has_bytes = read("size", entry.bytes);
    entry.has_stream = read("stream", entry.stream);
    entry.frames = fields_.Frames(value);
    return entry;
  }

  // Whether `entry` contains the values that a replay needs; if not, it is
  // skipped.
  bool IsUsable(std::uint64_t number, PickleValue value,
                const SnapshotEntry& entry) {
    const bool is_allocate = entry.action == Action::kAllocate;
    const bool is_block = is_allocate || entry.action == Action::kFree ||
                          entry.action == Action::kFreeCompleted;
    const char* missing = nullptr;
    if (is_block && !entry.has_address) {
      missing = "addr";
    } else if (is_allocate && !entry.has_bytes) {
      missing = "size";
    } else if (is_allocate && !entry.has_stream) {
      missing = "stream";
    }
    if (missing == nullptr) return true;
    Skip(number, value, missing, "an int");
    return false;
  }

  void NoteSegment(const SnapshotEntry& entry, bool is_mapping) {
    const bool is_segment = entry.action == Action::kSegmentAllocate ||
                            entry.action == Action::kSegmentFree;
    if (!is_segment) return;
    if (is_mapping) result_.is_expandable = true;
    if (!entry.has_bytes || !entry.has_address) result_.has_segments = false;
  }

  void Skip(std::uint64_t number, PickleValue value, const char* key,
            const char* expected) {
    builder_.Skip(SkipKind::kBadValue, number,
                  fields_.Problem(value, key, expected));
  }

  const SnapshotFields& fields_;
  TraceBuilder& builder_;
  SnapshotEntries result_;
};

}  // namespace

SnapshotEntries ReadSnapshotEntries(const std::vector<PickleValue>& values,
                                    const SnapshotFields& fields,
                                    TraceBuilder& builder) {
  return EntriesReader(fields, builder).Read(values);
}

SnapshotFrees::SnapshotFrees(std::vector<SnapshotEntry>& entries) {
  const bool has_requests = std::any_of(
      entries.begin(), entries.end(),
      [](const auto& entry) { return entry.action == Action::kFree; });
  for (SnapshotEntry& entry : entries) {
    if (entry.action == Action::kAllocate) {
      states_[entry.address] = State::kLive;
    } else if (entry.action == Action::kFree) {
      AddFree(entry, State::kFreeing);
    } else if (entry.action == Action::kFreeCompleted) {
      Complete(entry, has_requests);
    }
  }
}

void SnapshotFrees::Complete(SnapshotEntry& entry, bool has_requests) {
  const auto known = states_.find(entry.address);
  const bool is_free =
      known == states_.end() ? !has_requests : known->second == State::kLive;
  if (is_free) {
    entry.action = Action::kFree;
    ++completed_;
    AddFree(entry, State::kFree);
    return;
  }
  entry.action = Action::kOther;
  if (known != states_.end()) known->second = State::kFree;
}

void SnapshotFrees::AddFree(const SnapshotEntry& entry, State state) {
  const auto [known, is_first] = states_.try_emplace(entry.address, state);
  if (is_first && entry.has_bytes) {
    before_.push_back({entry.address, entry.bytes, entry.stream, 0});
  }
  known->second = state;
}

std::optional<SnapshotFrees::State> SnapshotFrees::StateOf(
    std::uint64_t address) const {
  const auto known = states_.find(address);
  if (known == states_.end()) return std::nullopt;
  return known->second;
}

}  // namespace strata::tools
