// The reports of `strata replay` as JSON and as text.

#include "strata/tools/replay_report.h"

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>

#include "strata/allocation/size.h"
#include "strata/tools/dump_json.h"
#include "strata/tools/table.h"

namespace strata {
namespace {

using Json = nlohmann::ordered_json;

// --- JSON -------------------------------------------------------------------

template <class Value>
Json OrNull(const std::optional<Value>& value) {
  if (!value) return nullptr;
  return *value;
}

// 0 is unknown.
Json KnownOrNull(std::uint64_t value) {
  if (value == 0) return nullptr;
  return value;
}

// The keys that say how the trace was read and recorded.
void AddTraceKeys(const ReplayRow& row, Json& json) {
  json["skipped"] = Json::object();
  for (const SkipKind kind : kSkipKinds) {
    const std::uint64_t count = row.trace.skipped.of(kind).count;
    if (count != 0) json["skipped"][SkipKindKey(kind)] = count;
  }
  json["may_be_wrong"] = row.trace.skipped.IsSuspect();
  json["device_bytes"] = KnownOrNull(row.device_bytes);
  json["recorded_device_bytes"] = KnownOrNull(row.trace.recorded_device_bytes);
  json["recorded_failures"] = row.trace.tries;
  json["recorded_failures_served"] = nullptr;
  if (!row.failed_line) {
    json["recorded_failures_served"] =
        row.trace.tries - row.result.failed_tries;
  }
  json["releases"] = row.trace.releases;
}

Json RowJson(const ReplayRow& row) {
  Json json;
  json["trace"] = row.trace.path;
  json["strategy"] = row.strategy;
  json["operations"] = row.trace.operations;
  json["failures_skipped"] = row.trace.failures_skipped;
  json["peak_live_bytes"] = row.trace.peak_live_bytes;
  json["peak_reserved_bytes"] = row.result.peak_reserved_bytes;
  json["reserved_ratio"] = OrNull(row.ReservedRatio());
  json["fit_bytes"] = nullptr;
  if (row.fit) json["fit_bytes"] = row.fit->capacity_bytes;
  json["fit_ratio"] = OrNull(row.FitRatio());
  json["fit_failures_above"] = nullptr;
  if (row.fit) json["fit_failures_above"] = row.fit->failures_above;
  json["device_calls"] = Json::object();
  for (const auto& [name, count] : row.result.device_calls) {
    json["device_calls"][name] = count;
  }
  json["modelled_device_us"] = row.result.modelled_device_us;
  json["ns_per_op"] = OrNull(row.ns_per_op);
  json["oom"] = false;
  if (row.failed_line) json["oom"] = *row.failed_line;
  json["failure"] = nullptr;
  if (row.failed_line) {
    json["failure"] = row.failed_where + ": " + row.result.failure;
  }
  AddTraceKeys(row, json);
  return json;
}

// --- The table --------------------------------------------------------------

std::string DeviceCalls(const ReplayRow& row) {
  if (row.is_recorded) return "-";
  std::string text;
  for (const auto& [name, count] : row.result.device_calls) {
    text += (text.empty() ? "" : ", ") + name + " " + std::to_string(count);
  }
  return text.empty() ? "none" : text;
}

// At most six characters.
std::string RatioText(const std::optional<double>& ratio) {
  if (ratio && *ratio >= 10000) return ">9999";
  return Fixed(ratio, ratio.value_or(0) < 100 ? 3 : 0);
}

std::string Outcome(const ReplayRow& row) {
  if (row.failed_line) return "out of memory";
  const std::uint64_t tries = row.trace.tries;
  const std::uint64_t served = tries - row.result.failed_tries;
  if (tries == 0) return row.is_recorded ? "-" : "runs";
  if (served == tries) return "served";
  if (served == 0) return "not served";
  return std::to_string(served) + "/" + std::to_string(tries) + " served";
}

std::string FitText(const ReplayRow& row) {
  if (row.is_recorded) return "-";
  return row.fit ? HumanBytes(row.fit->capacity_bytes) : "none";
}

std::string Milliseconds(const ReplayRow& row) {
  if (row.is_recorded) return "-";
  return Fixed(row.result.modelled_device_us / 1000, 1);
}

// When a column is part of the table.
enum class Shown : std::uint8_t {
  kAlways,
  kWide,
  kFit,
  kWideFit,
  kWideOrNoFit,
  kOutcome,  // of a run that failed, or a request that failed when recorded
};

struct Column {
  const char* title;
  Table::Align align;
  Shown shown;
  std::string (*text)(const ReplayRow& row);
  const char* help;
};

constexpr Table::Align kToTheLeft = Table::Align::kLeft;
constexpr Table::Align kToTheRight = Table::Align::kRight;

const Column kColumns[] = {
    {"strategy", kToTheLeft, Shown::kAlways,
     [](const ReplayRow& row) { return row.strategy; },
     "the strategy or peer; `recorded` is the program that was recorded"},
    {"operations", kToTheRight, Shown::kWide,
     [](const ReplayRow& row) { return std::to_string(row.trace.operations); },
     "allocations, frees and releases of the trace"},
    {"peak live", kToTheRight, Shown::kWide,
     [](const ReplayRow& row) { return HumanBytes(row.trace.peak_live_bytes); },
     "the most bytes that the program asked for at a time"},
    {"reserved", kToTheRight, Shown::kAlways,
     [](const ReplayRow& row) {
       return HumanBytes(row.result.peak_reserved_bytes);
     },
     "the most bytes that were taken from the device"},
    {"/live", kToTheRight, Shown::kAlways,
     [](const ReplayRow& row) { return RatioText(row.ReservedRatio()); },
     "reserved over peak live: 1.000 wastes nothing"},
    {"fits on", kToTheRight, Shown::kFit, &FitText,
     "with --fit: the smallest device that serves every request"},
    {"/live", kToTheRight, Shown::kFit,
     [](const ReplayRow& row) { return RatioText(row.FitRatio()); },
     "with --fit: fits on over peak live"},
    {"fails above", kToTheRight, Shown::kWideFit,
     [](const ReplayRow& row) {
       return row.fit ? std::to_string(row.fit->failures_above) : "-";
     },
     "with --fit: of 40 devices up to 20 % larger, those it fails on"},
    {"device ms", kToTheRight, Shown::kWide, &Milliseconds,
     "the time that a driver would take for the device calls"},
    {"ns/op", kToTheRight, Shown::kWideOrNoFit,
     [](const ReplayRow& row) { return Fixed(row.ns_per_op, 1); },
     "the host time of one operation; beside --fit with --wide only"},
    {"outcome", kToTheLeft, Shown::kOutcome, &Outcome,
     "whether it runs out of memory; `served`: also the\n"
     "               requests that ran out when they were recorded; there\n"
     "               only if a row or the recorded program ran out"},
    {"device calls", kToTheLeft, Shown::kWide, &DeviceCalls,
     "the calls to the driver"},
};

bool IsShown(Shown shown, const TraceReport& report, bool wide) {
  const auto any = [&](const auto& holds) {
    return std::any_of(report.rows.begin(), report.rows.end(), holds);
  };
  const bool has_fit = any([](const ReplayRow& row) { return row.has_fit; });
  switch (shown) {
    case Shown::kAlways:
      return true;
    case Shown::kWide:
      return wide;
    case Shown::kFit:
      return has_fit;
    case Shown::kWideFit:
      return wide && has_fit;
    case Shown::kWideOrNoFit:
      return wide || !has_fit;
    case Shown::kOutcome:
      return report.trace.tries != 0 || any([](const ReplayRow& row) {
               return row.failed_line.has_value();
             });
  }
  return true;
}

std::string ToTable(const TraceReport& report, bool wide) {
  Table table;
  std::vector<const Column*> columns;
  for (const Column& column : kColumns) {
    if (!IsShown(column.shown, report, wide)) continue;
    table.AddColumn(column.title, column.align);
    columns.push_back(&column);
  }
  for (const ReplayRow& row : report.rows) {
    std::vector<std::string> cells;
    for (const Column* column : columns) cells.push_back(column->text(row));
    table.AddRow(std::move(cells));
  }
  return table.ToString();
}

// --- The heading ------------------------------------------------------------

constexpr std::size_t kLineCharacters = 80;

std::string FactsLine(const TraceReport& report, const std::string& begin) {
  const TraceFacts& trace = report.trace;
  std::string text = begin;
  text.append(std::to_string(trace.operations)).append(" operations");
  if (trace.releases != 0) {
    text.append(", ").append(std::to_string(trace.releases));
    text.append(trace.releases == 1 ? " release" : " releases");
  }
  text.append(", peak live ").append(HumanBytes(trace.peak_live_bytes));
  std::string device = "device of " + HumanBytes(report.device_bytes);
  if (report.is_recorded_device) device.append(" as recorded");
  const bool fits = text.size() + 2 + device.size() <= kLineCharacters;
  text.append(fits ? ", " : ",\n  ").append(device);
  return text.append("\n");
}

std::string Heading(const TraceReport& report, const std::string& name) {
  const TraceFacts& trace = report.trace;
  std::string text = name + ": ";
  if (trace.skipped.IsSuspect()) {
    text.append(
        "THE RESULT MAY BE WRONG, as parts of the file are skipped\n  (");
    text.append(trace.skipped.Summary()).append("; the file has ");
    text.append(std::to_string(trace.skipped.rows())).append(" rows)\n");
    return text.append(FactsLine(report, ""));
  }
  return FactsLine(report, text);
}

// --- Names ------------------------------------------------------------------

std::string ShortName(const std::string& path) {
  std::string name = std::filesystem::path(path).filename().string();
  for (const std::string_view ending :
       {".gz", ".csv", ".log", ".json", ".txt", ".pickle", ".pkl"}) {
    if (name.size() > ending.size() && name.ends_with(ending)) {
      name.erase(name.size() - ending.size());
    }
  }
  return name;
}

}  // namespace

std::vector<std::string> NamesOf(const std::vector<std::string>& paths) {
  std::map<std::string, std::set<std::string>> paths_of;
  for (const std::string& path : paths) paths_of[ShortName(path)].insert(path);
  std::vector<std::string> names;
  for (const std::string& path : paths) {
    const std::string name = ShortName(path);
    names.push_back(paths_of[name].size() == 1 ? name : path);
  }
  return names;
}

std::string ToJson(const std::vector<TraceReport>& reports) {
  Json json = Json::array();
  for (const TraceReport& report : reports) {
    for (const ReplayRow& row : report.rows) json.push_back(RowJson(row));
  }
  return DumpJson(json);
}

std::string ToText(const TraceReport& report, const std::string& name,
                   bool wide) {
  return Heading(report, name) + ToTable(report, wide) + Summary(report) + "\n";
}

std::string ColumnsForHelp() {
  std::string text;
  for (const Column& column : kColumns) {
    const bool is_wide =
        column.shown == Shown::kWide || column.shown == Shown::kWideFit;
    std::string line = is_wide ? " *" : "  ";
    line += column.title;
    line.resize(15, ' ');
    text += line + column.help + "\n";
  }
  return text;
}

}  // namespace strata
