#include "strata/tools/readers/rmm_log.h"

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "strata/base/parse_number.h"
#include "strata/base/quoted.h"
#include "strata/tools/readers/handle_column.h"
#include "strata/tools/readers/line_reader.h"
#include "strata/tools/trace/trace_builder.h"

namespace strata::tools {
namespace {

enum RmmColumn : std::size_t {
  kThread,
  kTime,
  kAction,
  kPointer,
  kSize,
  kStream,
  kPlace,  // in Strata's own traces
  kFieldCount,
};

constexpr std::array<std::string_view, kFieldCount> kColumnNames = {
    "Thread", "Time", "Action", "Pointer", "Size", "Stream", "Place"};

constexpr std::size_t kNoColumn = static_cast<std::size_t>(-1);

bool IsNeeded(std::size_t column) {
  return column == kAction || column == kPointer || column == kSize;
}

std::string_view Trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

// The reason why `text` is no number of 64 bits.
std::string WrongSize(std::string_view text) {
  const bool is_negative = text.starts_with('-');
  const bool is_number =
      text.size() > (is_negative ? 1U : 0U) &&
      text.find_first_not_of("0123456789", is_negative ? 1 : 0) ==
          std::string_view::npos;
  if (!is_number) return "no size: " + Quoted(text);
  return (is_negative ? "the size is negative: "
                      : "the size exceeds 64 bits: ") +
         Quoted(text);
}

class RmmLogReader {
 public:
  RmmLogReader(InputBuffer& input, bool strict)
      : path_(input.path()),
        strict_(strict),
        lines_(input),
        builder_(input.path(), Trace::Unit::kLine, strict) {}

  Trace Read() {
    ReadHeader();
    std::string_view line;
    std::uint64_t blank_line = 0;
    while (lines_.Next(&line)) {
      if (line.empty()) {
        if (blank_line == 0) blank_line = lines_.line();
        continue;
      }
      if (blank_line != 0 && strict_) {
        builder_.Fail(blank_line, "a blank line between rows");
      }
      builder_.CountRow();
      if (Split(line)) ReadRow();
    }
    return builder_.Finish();
  }

 private:
  void ReadHeader() {
    std::string_view line;
    do {
      if (!lines_.Next(&line)) throw TraceError(path_, 0, "the file is empty");
    } while (Trimmed(line).empty());
    std::array<bool, kFieldCount> found{};
    for (bool more = true; more;) {
      const std::size_t comma = line.find(',');
      more = comma != std::string_view::npos;
      column_of_field_.push_back(
          FindColumn(Trimmed(line.substr(0, comma)), &found));
      if (more) line.remove_prefix(comma + 1);
    }
    RequireColumns(found);
    has_stream_ = found[kStream];
    has_place_ = found[kPlace];
  }

  void RequireColumns(const std::array<bool, kFieldCount>& found) {
    std::string missing;
    std::string needed;
    std::size_t count = 0;
    for (std::size_t column = kThread; column < kPlace; ++column) {
      if (found[column]) continue;
      ++count;
      const auto add_to = [column](std::string& names) {
        names.append(names.empty() ? "" : ", ").append(kColumnNames[column]);
      };
      add_to(missing);
      if (IsNeeded(column)) add_to(needed);
    }
    if (count == kPlace) {
      builder_.Fail(
          lines_.line(),
          "no known trace: neither a log of RMM, whose header has the "
          "columns " +
              missing + ", nor a log of Umpire, nor a snapshot of PyTorch");
    }
    if (!needed.empty()) {
      builder_.Fail(lines_.line(), Lacks(strict_ ? missing : needed));
    }
    if (count == 0) return;
    std::string reason = Lacks(missing);
    if (!found[kStream]) reason += "; all is taken for the default stream";
    builder_.Skip(SkipKind::kMissingColumn, lines_.line(), reason, count);
  }

  static std::string Lacks(const std::string& names) {
    const bool is_one = names.find(',') == std::string::npos;
    return (is_one ? "the header lacks the column "
                   : "the header lacks the columns ") +
           names;
  }

  std::size_t FindColumn(std::string_view name,
                         std::array<bool, kFieldCount>* found) const {
    for (std::size_t column = 0; column < kFieldCount; ++column) {
      if (name != kColumnNames[column]) continue;
      if ((*found)[column]) {
        builder_.Fail(lines_.line(),
                      "the header has " + Quoted(name) + " twice");
      }
      (*found)[column] = true;
      return column;
    }
    return kNoColumn;
  }

  // False if the line is not a row.
  bool Split(std::string_view line) {
    const char* at = line.data();
    const char* const end = at + line.size();
    std::size_t field = 0;
    for (const std::size_t column : column_of_field_) {
      if (at > end) break;
      const char* stop = at;
      while (stop != end && *stop != ',') ++stop;
      if (column != kNoColumn) {
        fields_[column] =
            std::string_view(at, static_cast<std::size_t>(stop - at));
      }
      at = stop + 1;
      ++field;
    }
    if (field == column_of_field_.size() && at > end) return true;
    SkipNoRow(field);
    return false;
  }

  void SkipNoRow(std::size_t fields) {
    const std::size_t expected = column_of_field_.size();
    Skip(SkipKind::kForeignRow,
         fields == expected
             ? std::string("the row has more columns than the header")
             : "the row has " + std::to_string(fields) +
                   " columns, the header " + std::to_string(expected));
  }

  void ReadRow() {
    const std::string_view action = fields_[kAction];
    const bool is_allocate = action == "allocate";
    const bool is_free = action == "free";
    const bool is_failure = action == "allocate failure";
    const bool is_release = action == "release";
    if (!is_allocate && !is_free && !is_failure && !is_release) {
      return Skip(SkipKind::kUnknownAction, "unknown action " + Quoted(action));
    }
    if (has_place_ && !IsOfThePlace()) return;
    if (is_allocate) {
      ReadAllocate();
    } else if (is_free) {
      ReadFree();
    } else if (is_failure) {
      ReadFailure();
    } else {
      builder_.Release(lines_.line());
    }
  }

  void ReadAllocate() {
    const auto pointer = Pointer();
    if (!pointer) return SkipPointer();
    const auto size = ParseNumber<std::uint64_t>(fields_[kSize]);
    if (!size) return Skip(SkipKind::kBadValue, WrongSize(fields_[kSize]));
    const auto stream = StreamId();
    if (!stream) {
      return Skip(SkipKind::kBadValue,
                  "no stream: " + Quoted(fields_[kStream]));
    }
    builder_.Allocate(lines_.line(), *pointer, *size, *stream);
  }

  // Uses only the pointer of a free.
  void ReadFree() {
    const auto pointer = Pointer();
    if (!pointer) return SkipPointer();
    const auto size = ParseNumber<std::uint64_t>(fields_[kSize]);
    if (!size && strict_) {
      builder_.Fail(lines_.line(), WrongSize(fields_[kSize]));
    }
    builder_.Free(lines_.line(), *pointer, size, StreamId());
  }

  void ReadFailure() {
    const auto size = ParseNumber<std::uint64_t>(fields_[kSize]);
    if (!size) return builder_.SkipFailure();
    builder_.Try(lines_.line(), *size, StreamId().value_or(0));
  }

  // False for a row that is left out.
  bool IsOfThePlace() {
    const std::string_view place = fields_[kPlace];
    if (place.empty()) {
      Skip(SkipKind::kBadValue, "no place");
      return false;
    }
    if (place_.empty() && place.starts_with("device:")) place_ = place;
    if (place != place_) builder_.SkipOtherPlace();
    return place == place_;
  }

  std::optional<std::uint64_t> Pointer() {
    const auto pointer = pointers_.Parse(fields_[kPointer]);
    if (pointers_.TakeTurned()) {
      builder_.RenameAddresses(&HandleColumn::ToHex);
    }
    return pointer;
  }

  std::optional<std::uint64_t> StreamId() {
    if (!has_stream_) return 0;
    const auto stream = streams_.Parse(fields_[kStream]);
    if (streams_.TakeTurned()) builder_.RenameStreams(&HandleColumn::ToHex);
    return stream;
  }

  void SkipPointer() {
    Skip(SkipKind::kBadValue, "no pointer: " + Quoted(fields_[kPointer]));
  }

  // Any part of the last row of a killed program may be wrong.
  void Skip(SkipKind kind, const std::string& reason) {
    builder_.Skip(lines_.is_unended() ? SkipKind::kCutRow : kind, lines_.line(),
                  reason);
  }

  const std::string path_;
  const bool strict_;
  LineReader lines_;
  TraceBuilder builder_;
  std::vector<std::size_t> column_of_field_;  // RmmColumn, or kNoColumn
  std::array<std::string_view, kFieldCount> fields_;
  HandleColumn pointers_;
  HandleColumn streams_;
  bool has_stream_ = false;
  bool has_place_ = false;
  std::string place_;  // of the first device; empty until one occurs
};

}  // namespace

Trace ReadRmmLog(InputBuffer& input, bool strict) {
  return RmmLogReader(input, strict).Read();
}

Trace ReadRmmLog(const std::string& path) {
  InputBuffer input(path);
  return ReadRmmLog(input);
}

}  // namespace strata::tools
