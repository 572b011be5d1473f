#include "strata/tools/readers/trace_reader.h"

#include <string_view>

#include "strata/tools/readers/file_kind.h"
#include "strata/tools/readers/line_reader.h"
#include "strata/tools/readers/rmm_log.h"
#include "strata/tools/readers/snapshot/pytorch_snapshot.h"
#include "strata/tools/readers/umpire_log.h"

namespace strata::tools {
namespace {

constexpr char kFirstOfPickle = '\x80';  // PROTO

// The first byte after a byte order mark and space; 0 if there is none nearby.
char FirstByte(std::string_view head) {
  if (head.starts_with(kByteOrderMark)) {
    head.remove_prefix(kByteOrderMark.size());
  }
  const std::size_t first = head.find_first_not_of(" \t\r\n");
  return first == std::string_view::npos ? '\0' : head[first];
}

// The first byte of a file that may be a trace.
char FirstByteOf(InputBuffer& input) {
  try {
    const std::string_view head = HeadOf(input);
    const std::string kind = ForeignKind(head, input.path());
    if (!kind.empty()) throw TraceError(input.path(), 0, "this is " + kind);
    return FirstByte(head);
  } catch (const InputError& error) {
    throw TraceError(input.path(), 1, error.what());
  }
}

Trace ReadByFirst(char first, InputBuffer& input,
                  const TraceReaderOptions& options) {
  if (first == kFirstOfPickle) {
    return ReadPytorchSnapshot(input, options.device, options.strict);
  }
  if (options.device) {
    throw TraceError(input.path(), 0,
                     "no snapshot, so it has no devices to choose from");
  }
  switch (first) {
    case '{':
    case '#':
      return ReadUmpireLog(input, options.strict);
    default:
      return ReadRmmLog(input, options.strict);
  }
}

}  // namespace

Trace ReadTrace(InputBuffer& input, const TraceReaderOptions& options) {
  Trace trace = ReadByFirst(FirstByteOf(input), input, options);
  CountInput(input, options.strict, &trace.skipped);
  return trace;
}

void CountInput(const InputBuffer& input, bool strict, SkipLog* log) {
  log->AddBytes(input.read_bytes());
  if (input.is_cut()) {
    if (strict) throw TraceError(input.path(), 0, kGzipCutReason);
    log->AddRows(1);
    log->Add(SkipKind::kCutRow, 0, kGzipCutReason);
  }
  const std::uint64_t bytes = input.trailing_bytes();
  if (bytes == 0) return;
  const char* reason = "the bytes after the gzip data are no gzip data";
  if (strict) throw TraceError(input.path(), 0, reason);
  log->Add(SkipKind::kTrailingBytes, 0, reason, bytes);
}

Trace ReadTrace(const std::string& path, const TraceReaderOptions& options) {
  InputBuffer input(path);
  return ReadTrace(input, options);
}

}  // namespace strata::tools
