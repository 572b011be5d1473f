#include "strata/tools/trace/trace_builder.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <utility>

#include "strata/base/size.h"

namespace strata::tools {
namespace {

std::string Hex(std::uint64_t address) {
  if (address == 0) return "(nil)";
  char digits[16];
  const auto [end, error] =
      std::to_chars(std::begin(digits), std::end(digits), address, 16);
  return error == std::errc() ? "0x" + std::string(digits, end) : "";
}

}  // namespace

TraceBuilder::TraceBuilder(const std::string& path, Trace::Unit unit,
                           bool strict)
    : strict_(strict) {
  trace_.path = path;
  trace_.unit = unit;
  trace_.streams.push_back(0);
  stream_indices_ = {{0, 0}, {1, 0}};
}

void TraceBuilder::Fail(std::uint64_t line, std::string_view reason) const {
  if (trace_.unit == Trace::Unit::kLine || line == 0) {
    throw TraceError(trace_.path, line, reason);
  }
  std::string text = Trace::UnitName(trace_.unit);
  text += " " + std::to_string(line) + ": ";
  throw TraceError(trace_.path, 0, text.append(reason));
}

void TraceBuilder::Skip(SkipKind kind, std::uint64_t line,
                        const std::string& reason, std::uint64_t count) {
  if (strict_) Fail(line, reason);
  trace_.skipped.Add(kind, line, reason, count);
}

void TraceBuilder::Allocate(std::uint64_t line, std::uint64_t address,
                            std::uint64_t bytes, std::uint64_t stream) {
  if (address == 0 && bytes != 0) {
    return Skip(SkipKind::kBadValue, line,
                "allocate of " + std::to_string(bytes) + " bytes at (nil)");
  }
  if (address != 0) {
    if (const auto old = live_.Remove(address)) {
      Skip(SkipKind::kMissingFree, line,
           "allocate of " + Hex(address) + ", which is live");
      EndSlot(line, *old, slot_streams_[*old]);
    }
  }
  const auto live_bytes = CheckedAdd(live_bytes_, bytes);
  if (!live_bytes) {
    return Skip(SkipKind::kBadValue, line, "more than 2^64 bytes are live");
  }
  const std::uint32_t slot = TakeSlot(line);
  if (address == 0) {
    live_null_.push_back(slot);
  } else {
    live_.Insert(address, slot);
  }
  const std::uint32_t index = StreamIndex(line, stream);
  slot_bytes_[slot] = bytes;
  slot_streams_[slot] = index;
  live_bytes_ = *live_bytes;
  trace_.peak_live_bytes = std::max(trace_.peak_live_bytes, live_bytes_);
  trace_.allocated_bytes.push_back(bytes);
  AddEvent(line, TraceEvent::Allocate(slot, index));
}

void TraceBuilder::Free(std::uint64_t line, std::uint64_t address,
                        std::optional<std::uint64_t> bytes,
                        std::optional<std::uint64_t> stream) {
  const std::optional<std::uint32_t> slot = TakeLive(address);
  if (!slot) {
    return Skip(address == 0 ? SkipKind::kNullFree : SkipKind::kUnmatchedFree,
                line, "free of " + Hex(address) + ", which is not live");
  }
  if (bytes && *bytes != slot_bytes_[*slot]) ++trace_.frees_of_other_size;
  const std::uint32_t index =
      stream ? StreamIndex(line, *stream) : slot_streams_[*slot];
  if (index != slot_streams_[*slot]) ++trace_.frees_of_other_stream;
  EndSlot(line, *slot, index);
}

// Removes the live block at `address` and returns its slot.
std::optional<std::uint32_t> TraceBuilder::TakeLive(std::uint64_t address) {
  if (address != 0) return live_.Remove(address);
  if (live_null_.empty()) return std::nullopt;
  const std::uint32_t slot = live_null_.back();
  live_null_.pop_back();
  return slot;
}

void TraceBuilder::EndSlot(std::uint64_t line, std::uint32_t slot,
                           std::uint32_t stream) {
  live_bytes_ -= slot_bytes_[slot];
  free_slots_.push_back(slot);
  AddEvent(line, TraceEvent::Free(slot, stream));
}

void TraceBuilder::Release(std::uint64_t line) {
  ++trace_.releases;
  AddEvent(line, TraceEvent::Release());
}

void TraceBuilder::Try(std::uint64_t line, std::uint64_t bytes,
                       std::uint64_t stream) {
  const auto live_bytes = CheckedAdd(live_bytes_, bytes);
  if (!live_bytes) return SkipFailure();
  const std::uint32_t slot = TakeSlot(line);
  free_slots_.push_back(slot);
  ++trace_.tries;
  trace_.peak_live_bytes = std::max(trace_.peak_live_bytes, *live_bytes);
  trace_.allocated_bytes.push_back(bytes);
  AddEvent(line, TraceEvent::Try(slot, StreamIndex(line, stream)));
}

void TraceBuilder::RenameAddresses(const Rename& renamed) {
  LiveMap live;
  live_.ForEach([&](std::uint64_t address, std::uint32_t slot) {
    live.Insert(renamed(address), slot);
  });
  live_ = std::move(live);
}

void TraceBuilder::RenameStreams(const Rename& renamed) {
  std::unordered_map<std::uint64_t, std::uint32_t> indices;
  for (const auto& [stream, index] : stream_indices_) {
    indices.emplace(renamed(stream), index);
  }
  stream_indices_ = std::move(indices);
  for (std::uint64_t& stream : trace_.streams) stream = renamed(stream);
  last_stream_ = renamed(last_stream_);
}

Trace TraceBuilder::Finish() {
  if (trace_.events.size() == trace_.releases) {
    if (const SkipLog::Skipped* first = trace_.skipped.First()) {
      Fail(first->line, first->reason);
    }
    std::string reason = "no allocate or free";
    if (trace_.failures_skipped > 0) {
      reason += ", only " + std::to_string(trace_.failures_skipped) +
                " allocate failures";
    }
    if (trace_.other_place_rows > 0) reason += " of device memory";
    Fail(0, reason);
  }
  NoteDefault(last_stream_);
  trace_.has_both_defaults = has_stream_0_ && has_stream_1_;
  trace_.slots = slot_bytes_.size();
  return std::move(trace_);
}

std::uint32_t TraceBuilder::TakeSlot(std::uint64_t line) {
  if (!free_slots_.empty()) {
    const std::uint32_t slot = free_slots_.back();
    free_slots_.pop_back();
    return slot;
  }
  if (slot_bytes_.size() > std::numeric_limits<std::uint32_t>::max()) {
    Fail(line, "more than 2^32 blocks are live");
  }
  slot_bytes_.push_back(0);
  slot_streams_.push_back(0);
  return static_cast<std::uint32_t>(slot_bytes_.size() - 1);
}

std::uint32_t TraceBuilder::StreamIndex(std::uint64_t line,
                                        std::uint64_t stream) {
  // Rows of one stream come in long runs.
  if (stream == last_stream_) return last_stream_index_;
  const auto next = static_cast<std::uint32_t>(trace_.streams.size());
  const auto [entry, is_new] = stream_indices_.emplace(stream, next);
  if (is_new) {
    if (next == TraceEvent::kMaxStreams) Fail(line, "more than 2^30 streams");
    trace_.streams.push_back(stream);
  }
  if (trace_.events.size() != trace_.releases) NoteDefault(last_stream_);
  last_stream_ = stream;
  last_stream_index_ = entry->second;
  return last_stream_index_;
}

// Called when the run of rows of a stream ends.
void TraceBuilder::NoteDefault(std::uint64_t stream) {
  has_stream_0_ = has_stream_0_ || stream == 0;
  has_stream_1_ = has_stream_1_ || stream == 1;
}

void TraceBuilder::AddEvent(std::uint64_t line, TraceEvent event) {
  if (line != next_line_) {
    trace_.line_jumps.push_back({trace_.events.size(), line});
  }
  next_line_ = line + 1;
  trace_.events.push_back(event);
}

}  // namespace strata::tools
