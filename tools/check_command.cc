// strata check: looks for hazards in recorded calls.

#include <cstdio>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "strata/facade/flags.h"
#include "strata/platform/check/call_trace_reader.h"
#include "strata/platform/check/hazard_checker.h"
#include "strata/tools/arguments.h"
#include "strata/tools/commands.h"
#include "strata/tools/dump_json.h"
#include "strata/tools/input_buffer.h"
#include "strata/tools/line_reader.h"
#include "strata/tools/table.h"

namespace strata {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kCheckUsage =
    R"(usage: strata check CALLS.csv… [flags]

Looks for hazards in the calls that a program made, as recorded with
--strata_device_trace_file on a GPU or a simulated device (plain or gzip):
memory used after it was freed, reused or given back while other work may still
use it, and the like. It finds them from the order that streams, events, waits
and graphs give, even if all went well when the calls were recorded.

  --format=table|json  for people (default) or programs

The first 64 hazards of each file are shown, all are counted.
Exit code: 0 if there is none; 1 if there are hazards; 2 if a file is bad.
)";

struct CheckedTrace {
  std::string path;
  std::uint64_t calls = 0;
  std::uint64_t hazards = 0;
  std::vector<HazardReport> reports;
};

CheckedTrace CheckTrace(const std::string& path) {
  InputBuffer input(path);
  LineReader lines(input);
  CallTraceReader reader(
      path, [&lines](std::string_view* line) { return lines.Next(line); });
  HazardChecker checker;
  CallRecord record;
  while (reader.Next(&record)) checker.Observe(record);
  CheckedTrace trace;
  trace.path = path;
  trace.calls = checker.record_count();
  trace.hazards = checker.hazard_count();
  trace.reports = checker.hazards();
  return trace;
}

// The header is the first line of the file.
std::uint64_t LineOf(const AccessSite& site) { return site.number + 1; }

std::string StreamText(const AccessSite& site) {
  return site.stream_uid == 0 ? "host" : std::to_string(site.stream_uid);
}

std::string HexText(std::uint64_t number) {
  char text[32];
  std::snprintf(text, sizeof text, "0x%llx",
                static_cast<unsigned long long>(number));
  return text;
}

std::string ToTable(const std::vector<CheckedTrace>& traces) {
  Table table;
  table.AddColumn("hazard", Table::Align::kLeft);
  table.AddColumn("trace", Table::Align::kLeft);
  table.AddColumn("address", Table::Align::kLeft);
  table.AddColumn("bytes", Table::Align::kRight);
  table.AddColumn("line", Table::Align::kRight);
  table.AddColumn("first", Table::Align::kLeft);
  table.AddColumn("stream", Table::Align::kRight);
  table.AddColumn("line", Table::Align::kRight);
  table.AddColumn("then", Table::Align::kLeft);
  table.AddColumn("stream", Table::Align::kRight);
  table.AddColumn("missing", Table::Align::kLeft);
  std::string summary;
  bool any = false;
  for (const CheckedTrace& trace : traces) {
    for (const HazardReport& report : trace.reports) {
      any = true;
      table.AddRow({HazardKindName(report.kind), trace.path,
                    HexText(report.ptr), std::to_string(report.bytes),
                    std::to_string(LineOf(report.first)),
                    DeviceCallName(report.first.call), StreamText(report.first),
                    std::to_string(LineOf(report.second)),
                    DeviceCallName(report.second.call),
                    StreamText(report.second), report.missing});
    }
    summary.append(trace.path).append(": ");
    summary.append(std::to_string(trace.calls)).append(" calls, ");
    summary.append(std::to_string(trace.hazards)).append(" hazards\n");
  }
  return any ? table.ToString() + "\n" + summary : summary;
}

Json SiteJson(const AccessSite& site) {
  return {{"line", LineOf(site)},         {"call", DeviceCallName(site.call)},
          {"device", site.device},        {"stream", site.stream_uid},
          {"thread", site.thread},        {"node", HexText(site.node)},
          {"pointer", HexText(site.ptr)}, {"bytes", site.bytes},
          {"time_ns", site.time_ns}};
}

Json LifeJson(const std::optional<Lifetime>& life) {
  if (!life) return nullptr;
  return {{"pointer", HexText(life->ptr)},
          {"bytes", life->bytes},
          {"allocated", SiteJson(life->allocated)},
          {"freed", life->freed ? SiteJson(*life->freed) : Json()},
          {"streams", life->streams}};
}

std::string ToJson(const std::vector<CheckedTrace>& traces) {
  Json all = Json::array();
  for (const CheckedTrace& trace : traces) {
    Json reports = Json::array();
    for (const HazardReport& report : trace.reports) {
      reports.push_back({{"kind", HazardKindName(report.kind)},
                         {"pointer", HexText(report.ptr)},
                         {"bytes", report.bytes},
                         {"first", SiteJson(report.first)},
                         {"second", SiteJson(report.second)},
                         {"first_life", LifeJson(report.first_life)},
                         {"second_life", LifeJson(report.second_life)},
                         {"missing", report.missing}});
    }
    all.push_back({{"trace", trace.path},
                   {"calls", trace.calls},
                   {"hazards", trace.hazards},
                   {"reports", reports}});
  }
  return DumpJson(all);
}

}  // namespace

int RunCheck(int argc, char** argv) {
  Arguments arguments(argc, argv);
  if (arguments.TakeHelp()) {
    std::fputs(kCheckUsage, stdout);
    return 0;
  }
  const bool as_json =
      arguments.TakeChoice("format", "table", {"table", "json"}) == "json";
  const std::vector<std::string> paths = arguments.ParseFlags();
  OptionsFromFlags();  // they are no use here, but must not be wrong either
  if (paths.empty()) {
    throw std::invalid_argument(
        "check: no recorded calls given; see strata check --help");
  }
  // Printed at the end: output that stops at an error is no result.
  std::vector<CheckedTrace> traces;
  bool has_hazards = false;
  for (const std::string& path : paths) {
    traces.push_back(CheckTrace(path));
    has_hazards = has_hazards || traces.back().hazards != 0;
  }
  std::fputs((as_json ? ToJson(traces) : ToTable(traces)).c_str(), stdout);
  return has_hazards ? 1 : 0;
}

}  // namespace strata
