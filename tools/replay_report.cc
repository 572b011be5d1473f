// The rows of `strata replay` as JSON and as a table.

#include <algorithm>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "strata/allocation/size.h"
#include "strata/tools/dump_json.h"
#include "strata/tools/replay_row.h"
#include "strata/tools/table.h"

namespace strata {
namespace {

template <class Value>
nlohmann::ordered_json OrNull(const std::optional<Value>& value) {
  if (!value) return nullptr;
  return *value;
}

nlohmann::ordered_json RowJson(const ReplayRow& row) {
  nlohmann::ordered_json json;
  json["trace"] = row.trace;
  json["strategy"] = row.strategy;
  json["operations"] = row.operations;
  json["failures_skipped"] = row.failures_skipped;
  json["peak_live_bytes"] = row.peak_live_bytes;
  json["peak_reserved_bytes"] = row.result.peak_reserved_bytes;
  json["reserved_ratio"] = OrNull(row.ReservedRatio());
  json["fit_bytes"] = nullptr;
  if (row.fit) json["fit_bytes"] = row.fit->capacity_bytes;
  json["fit_ratio"] = OrNull(row.FitRatio());
  json["fit_failures_above"] = nullptr;
  if (row.fit) json["fit_failures_above"] = row.fit->failures_above;
  json["device_calls"] = nlohmann::ordered_json::object();
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
  return json;
}

// "resnet50_train" for "traces/resnet50_train.csv.gz".
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

// The short names of traces; their paths, where a name would be of two.
std::map<std::string, std::string> NamesOf(const std::vector<ReplayRow>& rows) {
  std::map<std::string, std::set<std::string>> paths;
  for (const ReplayRow& row : rows) {
    paths[ShortName(row.trace)].insert(row.trace);
  }
  std::map<std::string, std::string> names;
  for (const auto& [name, those] : paths) {
    for (const std::string& path : those) {
      names[path] = those.size() == 1 ? name : path;
    }
  }
  return names;
}

std::string DeviceCalls(const ReplayRow& row) {
  std::string text;
  for (const auto& [name, count] : row.result.device_calls) {
    text += (text.empty() ? "" : ", ") + name + " " + std::to_string(count);
  }
  return text.empty() ? "none" : text;
}

bool AnyHas(const std::vector<ReplayRow>& rows, bool (*has)(const ReplayRow&)) {
  return std::any_of(rows.begin(), rows.end(), has);
}

bool HasFit(const ReplayRow& row) { return row.has_fit; }
bool HasFailed(const ReplayRow& row) { return row.failed_line.has_value(); }

void AddFitCells(const ReplayRow& row, std::vector<std::string>& cells) {
  cells.push_back(row.fit ? HumanBytes(row.fit->capacity_bytes) : "none");
  cells.push_back(Fixed(row.FitRatio(), 3));
  cells.push_back(row.fit ? std::to_string(row.fit->failures_above) : "-");
}

}  // namespace

std::string ToJson(const std::vector<ReplayRow>& rows) {
  nlohmann::ordered_json json = nlohmann::ordered_json::array();
  for (const ReplayRow& row : rows) json.push_back(RowJson(row));
  return DumpJson(json);
}

std::string ToTable(const std::vector<ReplayRow>& rows) {
  const bool with_fit = AnyHas(rows, &HasFit);
  const bool with_failures = AnyHas(rows, &HasFailed);
  Table table;
  const auto add_numbers = [&](std::initializer_list<const char*> titles) {
    for (const char* title : titles) {
      table.AddColumn(title, Table::Align::kRight);
    }
  };
  table.AddColumn("trace", Table::Align::kLeft);
  table.AddColumn("strategy", Table::Align::kLeft);
  add_numbers({"operations", "peak live", "peak reserved", "reserved/live"});
  if (with_fit) add_numbers({"fits on", "fit/live", "fails above"});
  add_numbers({"device ms", "ns/op"});
  if (with_failures) table.AddColumn("out of memory", Table::Align::kLeft);
  table.AddColumn("device calls", Table::Align::kLeft);

  const std::map<std::string, std::string> names = NamesOf(rows);
  for (const ReplayRow& row : rows) {
    std::vector<std::string> cells = {
        names.at(row.trace),
        row.strategy,
        std::to_string(row.operations),
        HumanBytes(row.peak_live_bytes),
        HumanBytes(row.result.peak_reserved_bytes),
        Fixed(row.ReservedRatio(), 3)};
    if (with_fit) AddFitCells(row, cells);
    cells.push_back(Fixed(row.result.modelled_device_us / 1000, 1));
    cells.push_back(Fixed(row.ns_per_op, 1));
    if (with_failures) {
      cells.push_back(row.failed_line
                          ? std::string("at ")
                                .append(Trace::UnitName(row.unit))
                                .append(" ")
                                .append(std::to_string(*row.failed_line))
                          : "no");
    }
    cells.push_back(DeviceCalls(row));
    table.AddRow(std::move(cells));
  }
  return table.ToString();
}

}  // namespace strata
