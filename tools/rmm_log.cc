#include "strata/tools/rmm_log.h"

#include <array>
#include <charconv>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "strata/platform/quoted.h"
#include "strata/tools/line_reader.h"
#include "strata/tools/trace_builder.h"

namespace strata {
namespace {

enum Column : std::size_t {
  kThread,
  kTime,
  kAction,
  kPointer,
  kSize,
  kStream,
  kPlace,  // of Strata's own traces
  kFieldCount,
};

constexpr std::array<std::string_view, kFieldCount> kColumnNames = {
    "Thread", "Time", "Action", "Pointer", "Size", "Stream", "Place"};

constexpr std::size_t kNoColumn = static_cast<std::size_t>(-1);

std::string_view Trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

// Decimal, or hexadecimal with 0x; nothing if it is neither or too large.
std::optional<std::uint64_t> ParseHandle(std::string_view text) {
  if (text == "(nil)") return 0;
  int base = 10;
  if (text.size() > 2 && text[0] == '0' && (text[1] == 'x' || text[1] == 'X')) {
    text.remove_prefix(2);
    base = 16;
  }
  std::uint64_t value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value, base);
  if (error != std::errc() || stop != end) return std::nullopt;
  return value;
}

class RmmLogReader {
 public:
  explicit RmmLogReader(InputBuffer& input)
      : path_(input.path()), lines_(input), builder_(input.path()) {}

  Trace Read() {
    ReadHeader();
    std::string_view line;
    std::uint64_t blank_line = 0;
    while (lines_.Next(&line)) {
      if (line.empty()) {
        if (blank_line == 0) blank_line = lines_.line();
        continue;
      }
      if (blank_line != 0) {
        builder_.Fail(blank_line, "a blank line between rows");
      }
      Split(line);
      ReadRow();
    }
    return builder_.Finish();
  }

 private:
  void ReadHeader() {
    std::string_view line;
    do {
      if (!lines_.Next(&line)) throw TraceError(path_, 0, "the file is empty");
    } while (Trimmed(line).empty());
    column_of_field_.clear();
    std::array<bool, kFieldCount> found{};
    for (bool more = true; more;) {
      const std::size_t comma = line.find(',');
      more = comma != std::string_view::npos;
      column_of_field_.push_back(
          FindColumn(Trimmed(line.substr(0, comma)), &found));
      if (more) line.remove_prefix(comma + 1);
    }
    std::string missing;
    std::size_t count = 0;
    for (std::size_t column = kThread; column < kPlace; ++column) {
      if (found[column]) continue;
      missing += (missing.empty() ? "" : ", ");
      missing += kColumnNames[column];
      ++count;
    }
    if (count == kPlace) {
      Fail(
          "no known trace: neither a log of RMM, whose header has the "
          "columns " +
          missing + ", nor a log of Umpire, nor a snapshot of PyTorch");
    }
    if (count != 0) Fail("the header lacks the column " + missing);
    has_place_ = found[kPlace];
  }

  std::size_t FindColumn(std::string_view name,
                         std::array<bool, kFieldCount>* found) const {
    for (std::size_t column = 0; column < kFieldCount; ++column) {
      if (name != kColumnNames[column]) continue;
      if ((*found)[column]) Fail("the header has " + Quoted(name) + " twice");
      (*found)[column] = true;
      return column;
    }
    return kNoColumn;
  }

  void Split(std::string_view line) {
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
    if (field < column_of_field_.size()) {
      Fail("the row has " + std::to_string(field) + " columns, the header " +
           std::to_string(column_of_field_.size()));
    }
    if (at <= end) Fail("the row has more columns than the header");
  }

  void ReadRow() {
    const std::string_view action = fields_[kAction];
    const bool is_allocate = action == "allocate";
    const bool is_free = action == "free";
    if (!is_allocate && !is_free && action != "allocate failure") {
      Fail("unknown action " + Quoted(action));
    }
    if (has_place_ && !IsOfThePlace()) {
      builder_.SkipOtherPlace();
    } else if (is_allocate) {
      builder_.Allocate(lines_.line(), Pointer(), Size(), StreamId());
    } else if (is_free) {
      builder_.Free(lines_.line(), Pointer(), Size(), StreamId());
    } else {
      Pointer();
      Size();
      builder_.SkipFailure();
    }
  }

  bool IsOfThePlace() {
    const std::string_view place = fields_[kPlace];
    if (place.empty()) Fail("no place");
    if (place_.empty() && place.starts_with("device:")) place_ = place;
    return place == place_;
  }

  std::uint64_t Pointer() const {
    const auto pointer = ParseHandle(fields_[kPointer]);
    if (!pointer) Fail("no pointer: " + Quoted(fields_[kPointer]));
    return *pointer;
  }

  std::uint64_t StreamId() const {
    const auto stream = ParseHandle(fields_[kStream]);
    if (!stream) Fail("no stream: " + Quoted(fields_[kStream]));
    return *stream;
  }

  std::uint64_t Size() const {
    const std::string_view text = fields_[kSize];
    std::uint64_t size = 0;
    const char* end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data(), end, size);
    if (error == std::errc() && stop == end) return size;
    const bool is_number =
        !text.empty() &&
        text.find_first_not_of("0123456789", text[0] == '-' ? 1 : 0) ==
            std::string_view::npos;
    if (is_number && text.size() > 1 && text[0] == '-') {
      Fail("the size is negative: " + Quoted(text));
    }
    if (error == std::errc::result_out_of_range) {
      Fail("the size exceeds 64 bits: " + Quoted(text));
    }
    Fail("no size: " + Quoted(text));
  }

  [[noreturn]] void Fail(const std::string& reason) const {
    builder_.Fail(lines_.line(), reason);
  }

  const std::string path_;
  LineReader lines_;
  TraceBuilder builder_;
  std::vector<std::size_t> column_of_field_;  // Column, or kNoColumn
  std::array<std::string_view, kFieldCount> fields_;
  bool has_place_ = false;
  std::string place_;  // the first device's; empty until there is one
};

}  // namespace

Trace ReadRmmLog(InputBuffer& input) { return RmmLogReader(input).Read(); }

Trace ReadRmmLog(const std::string& path) {
  InputBuffer input(path);
  return ReadRmmLog(input);
}

}  // namespace strata
