// The rows of `strata bench` as JSON and as a table.

#include <nlohmann/json.hpp>

#include "strata/tools/bench/bench.h"
#include "strata/tools/terminal/dump_json.h"
#include "strata/tools/terminal/table.h"

namespace strata::tools {
namespace {

const char* Name(BenchRow::Status status) {
  switch (status) {
    case BenchRow::Status::kNotInstalled:
      return "not_installed";
    case BenchRow::Status::kLeftOut:
      return "left_out";
    case BenchRow::Status::kFailed:
      return "failed";
    case BenchRow::Status::kOk:
      break;
  }
  return "ok";
}

// The row's median divided by the median of the best malloc.
std::optional<double> RatioToBestMalloc(const std::vector<BenchRow>& rows,
                                        const BenchRow& row) {
  const std::optional<double> best = BestMallocNs(rows, row.workload);
  const std::optional<double> median = row.MedianNs();
  if (!best || !median || *best <= 0) return std::nullopt;
  return *median / *best;
}

nlohmann::ordered_json OrNull(const std::optional<double>& value) {
  if (!value) return nullptr;
  return *value;
}

}  // namespace

std::optional<double> BestMallocNs(const std::vector<BenchRow>& rows,
                                   const std::string& workload) {
  std::optional<double> best;
  for (const BenchRow& row : rows) {
    const std::optional<double> median = row.MedianNs();
    if (row.workload == workload && median &&
        row.kind == BenchAllocator::Kind::kMalloc &&
        (!best || *median < *best)) {
      best = median;
    }
  }
  return best;
}

std::string ToJson(const std::vector<BenchRow>& rows) {
  auto json = nlohmann::ordered_json::array();
  for (const BenchRow& row : rows) {
    nlohmann::ordered_json object;
    object["workload"] = row.workload;
    object["allocator"] = row.allocator;
    object["ns_median"] = OrNull(row.MedianNs());
    object["ns_min"] = OrNull(row.MinNs());
    object["rounds"] = row.pair_ns.size();
    object["ratio_to_best_malloc"] = OrNull(RatioToBestMalloc(rows, row));
    object["reserved_ratio"] = OrNull(row.reserved_ratio);
    object["status"] = Name(row.status);
    object["note"] = row.note;
    json.push_back(std::move(object));
  }
  return DumpJson(json);
}

std::string ToTable(const std::vector<BenchRow>& rows) {
  Table table;
  table.AddColumn("workload", Table::Align::kLeft);
  table.AddColumn("allocator", Table::Align::kLeft);
  for (const char* title :
       {"median ns", "min ns", "to best malloc", "reserved/live"}) {
    table.AddColumn(title, Table::Align::kRight);
  }
  table.AddColumn("", Table::Align::kLeft);
  std::string workload;
  for (const BenchRow& row : rows) {
    table.AddRow({row.workload == workload ? "" : row.workload, row.allocator,
                  Fixed(row.MedianNs(), 1), Fixed(row.MinNs(), 1),
                  Fixed(RatioToBestMalloc(rows, row), 2),
                  Fixed(row.reserved_ratio, 3), row.note});
    workload = row.workload;
  }
  return table.ToString();
}

}  // namespace strata::tools
