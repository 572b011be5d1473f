#include "strata/tools/readers/file_kind.h"

#include <algorithm>
#include <cctype>

#include "strata/platform/calls/call_trace.h"
#include "strata/tools/readers/line_reader.h"

namespace strata::tools {
namespace {

using namespace std::string_view_literals;

constexpr std::size_t kHeadBytes = std::size_t{64} << 10;

constexpr const char* kDump =
    "torch.cuda.memory._record_memory_history() and then "
    "torch.cuda.memory._dump_snapshot(FILE) write the snapshot that "
    "`strata replay` reads";

struct Magic {
  std::string_view bytes;  // first bytes of the file
  const char* kind;
};

constexpr Magic kMagics[] = {
    {"\xfd"
     "7zXZ\0"sv,
     "a file compressed by xz; decompress it, or compress it by gzip"},
    {"\x28\xb5\x2f\xfd"sv,
     "a file compressed by zstd; decompress it, or compress it by gzip"},
    {"BZh"sv,
     "a file compressed by bzip2; decompress it, or compress it by gzip"},
    {"NVR\0"sv, "a report of Nsight Compute (ncu), which has no allocations"},
    {"\x7f"
     "ELF"sv,
     "a program or library"},
    {"%PDF"sv, "a PDF document"},
};

bool Has(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

std::string_view WithoutSpace(std::string_view head) {
  if (head.starts_with(kByteOrderMark)) {
    head.remove_prefix(kByteOrderMark.size());
  }
  const std::size_t first = head.find_first_not_of(" \t\r\n");
  return first == std::string_view::npos ? std::string_view()
                                         : head.substr(first);
}

std::string PageKind(std::string_view text) {
  if (Has(text, "MemoryViz") || Has(text, "memory_viz")) {
    return "an HTML page of PyTorch's memory_viz; `strata replay` reads the "
           "snapshot that it was made from";
  }
  return "an HTML or XML page";
}

// The kind of a JSON object or list; "" for a line of Umpire's.
std::string JsonKind(std::string_view text) {
  const std::string_view line = text.substr(0, text.find('\n'));
  if (Has(line, "\"payload\"") || Has(line, "\"category\"")) return "";
  if (Has(text, "\"device_traces\"")) {
    return std::string("a memory snapshot of PyTorch as JSON; ") + kDump;
  }
  if (Has(text, "\"traceEvents\"") || Has(text, "\"schemaVersion\"")) {
    return std::string(
               "a profile (Kineto, or another Chrome trace), which has "
               "no history of allocations; ") +
           kDump;
  }
  if (Has(text, "\"blocks\"") || Has(text, "\"segments\"")) {
    return std::string(
               "segments of torch.cuda.memory_snapshot() as JSON, "
               "which have no history; ") +
           kDump;
  }
  if (Has(text, "\"step_id\"") && Has(text, "\"event\"")) {
    return "an allocation log of Strata; --strata_trace_file records the trace "
           "that `strata replay` reads";
  }
  if (text.starts_with('[')) return "a list in JSON, which is no known trace";
  return "";
}

std::string ArchiveKind(std::string_view head) {
  if (Has(head, "/data.pkl") || Has(head, "/version")) {
    return std::string("an archive of torch.save(); ") + kDump;
  }
  return "a zip archive; unpack it";
}

std::string DatabaseKind(std::string_view head) {
  if (Has(head, "CUPTI_ACTIVITY") || Has(head, "TARGET_INFO")) {
    return "an SQLite export of Nsight Systems (nsys), which is no known trace";
  }
  return "an SQLite database, which is no known trace";
}

// Matches the end of the lower-case name, with or without `.gz`.
std::string KindByName(std::string_view path) {
  std::string name(path);
  std::transform(name.begin(), name.end(), name.begin(), [](char c) {
    return static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  });
  if (name.ends_with(".gz")) name.erase(name.size() - 3);
  if (name.ends_with(".nsys-rep") || name.ends_with(".qdrep")) {
    return "a report of Nsight Systems (nsys), which is no known trace";
  }
  return "";
}

}  // namespace

std::string ForeignKind(std::string_view head, std::string_view path) {
  for (const Magic& magic : kMagics) {
    if (head.starts_with(magic.bytes)) return magic.kind;
  }
  if (head.starts_with("PK\x03\x04")) return ArchiveKind(head);
  if (head.starts_with("SQLite format 3")) return DatabaseKind(head);
  // The magic number of torch.save() before it wrote archives.
  if (head.starts_with("\x80\x02\x8a\x0a"
                       "l\xfc\x9c"
                       "F\xf9")) {
    return std::string("a file of torch.save(); ") + kDump;
  }
  const std::string_view text = WithoutSpace(head);
  if (text.starts_with(kCallTraceHeader)) {
    return "a trace of device calls, which `strata check` reads; "
           "--strata_trace_file records the trace that `strata replay` reads";
  }
  if (text.starts_with('<')) return PageKind(text);
  if (text.starts_with('{') || text.starts_with('[')) {
    std::string kind = JsonKind(text);
    if (!kind.empty()) return kind;
  }
  return KindByName(path);
}

std::string CallForeignKind(std::string_view head, std::string_view path) {
  const std::string_view text = WithoutSpace(head);
  if (text.starts_with(kCallTraceHeader)) return "";
  std::string kind = ForeignKind(head, path);
  if (!kind.empty()) return kind;
  const std::string_view line = text.substr(0, text.find('\n'));
  const bool is_trace = head.starts_with('\x80') ||
                        (Has(line, "Action") && Has(line, "Pointer")) ||
                        Has(line, "\"payload\"") || Has(line, "\"category\"");
  if (!is_trace) return "";
  return "a recording of allocations, which `strata replay` reads; "
         "--strata_device_trace_file records the calls that `strata check` "
         "reads";
}

std::string_view HeadOf(InputBuffer& input) {
  while (input.size() < kHeadBytes && input.Fill()) {
  }
  return {input.data(), std::min(input.size(), kHeadBytes)};
}

}  // namespace strata::tools
