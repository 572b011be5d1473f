// strata check: checks recorded calls for hazards.

#include <cstdio>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <vector>

#include "strata/facade/flags.h"
#include "strata/tools/commands/arguments.h"
#include "strata/tools/commands/call_check.h"
#include "strata/tools/commands/commands.h"
#include "strata/tools/readers/input_buffer.h"
#include "strata/tools/terminal/dump_json.h"
#include "strata/tools/terminal/table.h"
#include "strata/tools/trace/trace.h"
#include "strata/tools/trace/trace_warnings.h"

namespace strata::tools {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kCheckUsage =
    R"(usage: strata check CALLS.csv… [flags]

Checks the recorded calls of a program for hazards: memory that is used after
its free, or reused or released while other work may still use it, and the like.
CALLS.csv is a recording of --strata_device_trace_file on a GPU or a simulated
device (plain or gzip). Hazards follow from the order of streams, events, waits
and graphs, even if the recorded program had no error.

  --format=table|json  for people (default) or programs
  --strict             refuse a file with a line that is no known call

The first 64 hazards of each file are shown, all are counted. A line that is no
known call is skipped, counted and named in a warning; above 1 % of the lines the
result may be wrong.
Exit code: 0 without hazards; 1 if there are hazards; 2 if a file cannot be read
(the others are); 3 if a result may be wrong. Of several the first of 2, 3, 1
counts.
)";

std::string StreamText(const check::AccessSite& site) {
  return site.stream_uid == 0 ? "host" : std::to_string(site.stream_uid);
}

std::string HexText(std::uint64_t number) {
  char text[32];
  std::snprintf(text, sizeof text, "0x%llx",
                static_cast<unsigned long long>(number));
  return text;
}

std::string ToTable(const std::vector<CheckedCalls>& traces) {
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
  for (const CheckedCalls& trace : traces) {
    for (const check::HazardReport& report : trace.reports) {
      any = true;
      table.AddRow({check::HazardKindName(report.kind), trace.path,
                    HexText(report.ptr), std::to_string(report.bytes),
                    std::to_string(trace.LineOf(report.first.number)),
                    DeviceCallName(report.first.call), StreamText(report.first),
                    std::to_string(trace.LineOf(report.second.number)),
                    DeviceCallName(report.second.call),
                    StreamText(report.second), report.missing});
    }
    summary.append(trace.path).append(": ");
    summary.append(std::to_string(trace.calls)).append(" calls, ");
    summary.append(std::to_string(trace.hazards)).append(" hazards");
    if (trace.skipped.IsSuspect()) {
      summary.append("; THE RESULT MAY BE WRONG, as lines are skipped (");
      summary.append(trace.skipped.Summary()).append(")");
    }
    summary.append("\n");
  }
  return any ? table.ToString() + "\n" + summary : summary;
}

Json SiteJson(const CheckedCalls& trace, const check::AccessSite& site) {
  return {{"line", trace.LineOf(site.number)},
          {"call", DeviceCallName(site.call)},
          {"device", site.device},
          {"stream", site.stream_uid},
          {"thread", site.thread},
          {"node", HexText(site.node)},
          {"pointer", HexText(site.ptr)},
          {"bytes", site.bytes},
          {"time_ns", site.time_ns}};
}

Json LifeJson(const CheckedCalls& trace,
              const std::optional<check::Lifetime>& life) {
  if (!life) return nullptr;
  return {{"pointer", HexText(life->ptr)},
          {"bytes", life->bytes},
          {"allocated", SiteJson(trace, life->allocated)},
          {"freed", life->freed ? SiteJson(trace, *life->freed) : Json()},
          {"streams", life->streams}};
}

std::string ToJson(const std::vector<CheckedCalls>& traces) {
  Json all = Json::array();
  for (const CheckedCalls& trace : traces) {
    Json reports = Json::array();
    for (const check::HazardReport& report : trace.reports) {
      reports.push_back({{"kind", check::HazardKindName(report.kind)},
                         {"pointer", HexText(report.ptr)},
                         {"bytes", report.bytes},
                         {"first", SiteJson(trace, report.first)},
                         {"second", SiteJson(trace, report.second)},
                         {"first_life", LifeJson(trace, report.first_life)},
                         {"second_life", LifeJson(trace, report.second_life)},
                         {"missing", report.missing}});
    }
    Json skipped = Json::object();
    for (const SkipKind kind : kSkipKinds) {
      const std::uint64_t count = trace.skipped.of(kind).count;
      if (count != 0) skipped[SkipKindKey(kind)] = count;
    }
    all.push_back({{"trace", trace.path},
                   {"calls", trace.calls},
                   {"hazards", trace.hazards},
                   {"reports", reports},
                   {"skipped", skipped},
                   {"may_be_wrong", trace.skipped.IsSuspect()}});
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
  const bool strict = arguments.TakeBool("strict", false);
  const std::vector<std::string> paths = arguments.ParseFlags();
  OptionsFromFlags();  // not used, but a wrong value must be an error
  if (paths.empty()) {
    throw std::invalid_argument(
        "check: no recorded calls given; see strata check --help");
  }
  std::vector<CheckedCalls> traces;
  bool has_errors = false;
  bool has_hazards = false;
  bool may_be_wrong = false;
  for (const std::string& path : paths) {
    try {
      InputBuffer input(path);
      traces.push_back(CheckCalls(input, strict));
    } catch (const TraceError& error) {
      std::fprintf(stderr, "strata: %s\n", error.what());
      has_errors = true;
      continue;
    }
    const CheckedCalls& trace = traces.back();
    WarnOfSkipped(path, Trace::Unit::kLine, trace.skipped);
    has_hazards = has_hazards || trace.hazards != 0;
    may_be_wrong = may_be_wrong || trace.skipped.IsSuspect();
  }
  if (!traces.empty()) {
    std::fputs((as_json ? ToJson(traces) : ToTable(traces)).c_str(), stdout);
  }
  if (has_errors) return 2;
  if (may_be_wrong) return 3;
  return has_hazards ? 1 : 0;
}

}  // namespace strata::tools
