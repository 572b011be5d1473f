// The reports of `strata replay` as text.

#include "strata/tools/replay/replay_report.h"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <map>
#include <set>
#include <string_view>

#include "strata/base/size.h"
#include "strata/tools/terminal/table.h"

namespace strata::tools {
namespace {

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

// "1204 -> 0": `text` of the first pass and of the last completed one.
std::string FirstAndLast(const ReplayRow& row,
                         std::string (*text)(const PassSample& sample)) {
  const PassSample* last = row.LastPass();
  if (last == nullptr) return "-";
  return text(row.result.passes.front()) + " -> " + text(*last);
}

std::string PassCalls(const PassSample& sample) {
  return std::to_string(sample.CallCount());
}

std::string PassMilliseconds(const PassSample& sample) {
  return Fixed(static_cast<double>(sample.modelled_ns) / 1e6, 1);
}

std::string LongestMicroseconds(const PassSample& sample) {
  return Fixed(static_cast<double>(sample.longest_request_ns) / 1e3, 0);
}

std::string ReservedIn(const PassSample* sample) {
  return sample == nullptr ? "-" : HumanBytes(sample->peak_reserved_bytes);
}

// The condition for a column of the table.
enum class Shown : std::uint8_t {
  kAlways,
  kWide,
  kFit,
  kWideFit,
  kWideOrNoFit,
  kOutcome,  // a run failed, or a request failed when recorded
  kPasses,   // several passes, as far as 80 characters allow, or wide
  kWidePasses,
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
     [](const ReplayRow& row) { return row.Name(); },
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
    {"calls", kToTheRight, Shown::kPasses,
     [](const ReplayRow& row) { return FirstAndLast(row, &PassCalls); },
     "with --passes: device calls of the first pass -> the last one"},
    {"pass ms", kToTheRight, Shown::kPasses,
     [](const ReplayRow& row) { return FirstAndLast(row, &PassMilliseconds); },
     "and the time that a driver would take for them"},
    {"longest us", kToTheRight, Shown::kPasses,
     [](const ReplayRow& row) {
       return FirstAndLast(row, &LongestMicroseconds);
     },
     "and that of the allocation which takes longest"},
    {"in pass 10", kToTheRight, Shown::kWidePasses,
     [](const ReplayRow& row) { return ReservedIn(row.result.SampleOf(10)); },
     "the most bytes reserved in the tenth pass"},
    {"in last", kToTheRight, Shown::kWidePasses,
     [](const ReplayRow& row) { return ReservedIn(row.LastPass()); },
     "the most bytes reserved in the last pass that ended"},
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
  const bool has_passes =
      any([](const ReplayRow& row) { return row.passes != 0; });
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
      return wide || (!has_fit && !has_passes);
    case Shown::kPasses:
      return has_passes;
    case Shown::kWidePasses:
      return wide && has_passes;
    case Shown::kOutcome:
      return report.trace.tries != 0 || any([](const ReplayRow& row) {
               return row.failed_line.has_value();
             });
  }
  return true;
}

constexpr std::size_t kLineCharacters = 80;

using Columns = std::vector<const Column*>;

std::string TableOf(const TraceReport& report, const Columns& columns) {
  Table table;
  for (const Column* column : columns) {
    table.AddColumn(column->title, column->align);
  }
  for (const ReplayRow& row : report.rows) {
    std::vector<std::string> cells;
    for (const Column* column : columns) cells.push_back(column->text(row));
    table.AddRow(std::move(cells));
  }
  return table.ToString();
}

bool FitsLines(const std::string& text) {
  std::size_t begin = 0;
  for (std::size_t end = 0;
       (end = text.find('\n', begin)) != std::string_view::npos;
       begin = end + 1) {
    if (end - begin > kLineCharacters) return false;
  }
  return true;
}

// Removes the last column about passes. False if there is none.
bool DropPassColumn(Columns& columns) {
  const auto last = std::find_if(
      columns.rbegin(), columns.rend(),
      [](const Column* column) { return column->shown == Shown::kPasses; });
  if (last == columns.rend()) return false;
  columns.erase(std::next(last).base());
  return true;
}

std::string ToTable(const TraceReport& report, bool wide) {
  Columns columns;
  for (const Column& column : kColumns) {
    if (IsShown(column.shown, report, wide)) columns.push_back(&column);
  }
  std::string all = TableOf(report, columns);
  if (wide || FitsLines(all)) return all;
  while (DropPassColumn(columns)) {
    std::string some = TableOf(report, columns);
    if (FitsLines(some)) return some;
  }
  return all;  // a strategy's name is too long
}

// --- The heading ------------------------------------------------------------

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

std::string ToText(const TraceReport& report, const std::string& name,
                   bool wide) {
  return Heading(report, name) + ToTable(report, wide) + Summary(report) + "\n";
}

std::string ColumnsForHelp() {
  std::string text;
  for (const Column& column : kColumns) {
    const bool is_wide = column.shown == Shown::kWide ||
                         column.shown == Shown::kWideFit ||
                         column.shown == Shown::kWidePasses;
    std::string line = is_wide ? " *" : "  ";
    line += column.title;
    line.resize(15, ' ');
    text += line + column.help + "\n";
  }
  return text;
}

}  // namespace strata::tools
