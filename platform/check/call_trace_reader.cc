#include "strata/platform/check/call_trace_reader.h"

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <fstream>
#include <limits>
#include <memory>
#include <utility>

#include "strata/base/parse_number.h"
#include "strata/base/quoted.h"
#include "strata/platform/calls/call_trace.h"

namespace strata::check {
namespace {

constexpr std::size_t kFields = 10;

using Fields = std::array<std::string_view, kFields>;

Fields Split(std::string_view line) {
  Fields fields;
  std::size_t count = 0;
  while (true) {
    const std::size_t comma = line.find(',');
    if (count < kFields) fields[count] = line.substr(0, comma);
    ++count;
    if (comma == std::string_view::npos) break;
    line.remove_prefix(comma + 1);
  }
  if (count != kFields) {
    throw std::invalid_argument(std::to_string(count) + " fields, not " +
                                std::to_string(kFields));
  }
  return fields;
}

template <class Number>
Number ToNumber(std::string_view text, int base = 10) {
  std::string_view digits = text;
  if (base == 16 && digits.substr(0, 2) == "0x") digits.remove_prefix(2);
  if (const auto number = ParseNumber<Number>(digits, base)) return *number;
  throw std::invalid_argument(Quoted(text) + " is no number of this field");
}

// True if Bytes of the call is the size of a range that starts at Pointer.
bool HasRange(DeviceCall call) {
  switch (call) {
    case DeviceCall::kMemAlloc:
    case DeviceCall::kMallocHost:
    case DeviceCall::kHostRegister:
    case DeviceCall::kMallocManaged:
    case DeviceCall::kMemcpyAsync:
    case DeviceCall::kMemsetAsync:
    case DeviceCall::kMallocFromPoolAsync:
    case DeviceCall::kReserveRange:
    case DeviceCall::kFreeRange:
    case DeviceCall::kMapRange:
    case DeviceCall::kUnmapRange:
    case DeviceCall::kSetAccess:
    case DeviceCall::kUse:
    case DeviceCall::kBlockAlloc:
    case DeviceCall::kBlockFree:
    case DeviceCall::kBlockMark:
      return true;
    default:
      return false;
  }
}

void RequireEnd(std::uint64_t ptr, std::uint64_t bytes) {
  if (bytes <= std::numeric_limits<std::uint64_t>::max() - ptr) return;
  throw std::invalid_argument(std::to_string(bytes) +
                              " bytes do not end within 64 bits of address");
}

CallTraceReader::LineSource LinesOf(const std::string& path) {
  struct Lines {
    std::ifstream file;
    std::string line;
  };
  // Shared, because the function must be copyable and a file is not.
  const auto lines = std::make_shared<Lines>();
  lines->file.open(path);
  if (!lines->file) {
    throw CallTraceError(path + ": cannot be opened: " + std::strerror(errno));
  }
  return [path, lines](std::string_view* result) {
    if (!std::getline(lines->file, lines->line)) {
      if (lines->file.bad()) throw CallTraceError(path + ": cannot be read");
      return false;
    }
    *result = lines->line;
    if (result->ends_with('\r')) result->remove_suffix(1);
    return true;
  };
}

}  // namespace

CallRecord ParseCallRecord(std::string_view line) {
  const Fields fields = Split(line);
  CallRecord record;
  record.time_ns = ToNumber<std::uint64_t>(fields[0]);
  record.thread = ToNumber<std::uint64_t>(fields[1]);
  record.device = ToNumber<std::int32_t>(fields[2]);
  if (!ParseObservedCall(fields[3], &record.call)) {
    throw std::invalid_argument(Quoted(fields[3]) + " is no call");
  }
  record.ptr = ToNumber<std::uint64_t>(fields[4], 16);
  record.bytes = ToNumber<std::uint64_t>(fields[5]);
  record.value = ToNumber<std::uint64_t>(fields[6], 16);
  record.stream_uid = ToNumber<std::uint64_t>(fields[7]);
  record.status = static_cast<Status>(ToNumber<std::int32_t>(fields[8]));
  record.node = ToNumber<std::uint64_t>(fields[9], 16);
  if (HasRange(record.call)) RequireEnd(record.ptr, record.bytes);
  if (record.call == DeviceCall::kMemcpyAsync) {
    RequireEnd(record.value, record.bytes);
  }
  return record;
}

CallTraceReader::CallTraceReader(const std::string& path)
    : CallTraceReader(path, LinesOf(path)) {}

CallTraceReader::CallTraceReader(std::string path, LineSource lines)
    : path_(std::move(path)), lines_(std::move(lines)) {
  std::string_view header;
  if (!NextLine(&header) || header != kCallTraceHeader) {
    line_ = 1;
    Fail(std::string("is no call trace: its first line is not ")
             .append(Quoted(kCallTraceHeader)));
  }
}

bool CallTraceReader::Next(CallRecord* record) {
  std::string_view line;
  if (!NextLine(&line)) return false;
  if (line.empty()) {
    const std::uint64_t blank_line = line_;
    while (line.empty()) {
      if (!NextLine(&line)) return false;
    }
    line_ = blank_line;
    Fail("a blank line between calls");
  }
  try {
    *record = ParseCallRecord(line);
  } catch (const std::invalid_argument& error) {
    Fail(error.what());
  }
  return true;
}

bool CallTraceReader::NextLine(std::string_view* line) {
  if (!lines_(line)) return false;
  ++line_;
  return true;
}

void CallTraceReader::Fail(const std::string& reason) const {
  throw CallTraceError(path_ + ":" + std::to_string(line_) + ": " + reason);
}

}  // namespace strata::check
