// The reports of `strata replay` as JSON.

#include <nlohmann/json.hpp>

#include "strata/tools/replay/replay_report.h"
#include "strata/tools/terminal/dump_json.h"

namespace strata::tools {
namespace {

using Json = nlohmann::ordered_json;

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

double Microseconds(std::uint64_t ns) { return static_cast<double>(ns) / 1000; }

// The keys about the reading and the recording of the trace.
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

Json SampleJson(const PassSample& sample) {
  Json json;
  json["pass"] = sample.pass;
  json["device_calls"] = Json::object();
  for (const auto& [name, count] : sample.device_calls) {
    json["device_calls"][name] = count;
  }
  json["modelled_device_us"] = Microseconds(sample.modelled_ns);
  json["longest_request_us"] = Microseconds(sample.longest_request_ns);
  json["peak_reserved_bytes"] = sample.peak_reserved_bytes;
  return json;
}

// The keys of --passes; null without.
void AddPassKeys(const ReplayRow& row, Json& json) {
  for (const char* key : {"passes", "passes_done", "jitter_percent",
                          "first_pass", "last_pass", "pass_samples"}) {
    json[key] = nullptr;
  }
  if (row.passes == 0 || row.is_recorded) return;
  json["passes"] = row.passes;
  json["passes_done"] = row.result.passes_done;
  json["jitter_percent"] = row.jitter_ppm / 10'000.0;
  json["pass_samples"] = Json::array();
  for (const PassSample& sample : row.result.passes) {
    json["pass_samples"].push_back(SampleJson(sample));
  }
  if (row.result.passes.empty()) return;
  json["first_pass"] = SampleJson(row.result.passes.front());
  json["last_pass"] = SampleJson(row.result.passes.back());
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
  AddPassKeys(row, json);
  json["chosen_by_auto"] = row.is_auto;
  return json;
}

}  // namespace

std::string ToJson(const std::vector<TraceReport>& reports) {
  Json json = Json::array();
  for (const TraceReport& report : reports) {
    for (const ReplayRow& row : report.rows) json.push_back(RowJson(row));
  }
  return DumpJson(json);
}

}  // namespace strata::tools
