#ifndef STRATA_TESTS_TOOLS_READERS_SNAPSHOT_SNAPSHOT_JSON_H_
#define STRATA_TESTS_TOOLS_READERS_SNAPSHOT_SNAPSHOT_JSON_H_

#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "strata/tests/tools/readers/pickle/pickle_text.h"
#include "strata/tools/readers/snapshot/pytorch_snapshot.h"

// Parts of a snapshot of PyTorch as JSON, and readers of it.
namespace strata::tools::snapshot_json {

using Json = nlohmann::json;

inline Json Entry(const std::string& action, std::uint64_t address,
                  std::uint64_t bytes, std::uint64_t stream = 0) {
  return {{"action", action},
          {"addr", address},
          {"size", bytes},
          {"stream", stream},
          {"frames", Json::array()}};
}

inline Json Block(std::uint64_t address, std::uint64_t requested_bytes,
                  const std::string& state = "active_allocated") {
  return {{"address", address},
          {"size", 512},
          {"requested_size", requested_bytes},
          {"state", state},
          {"frames", Json::array()}};
}

// Lists are vectors: compilers disagree on the meaning of {value} for Json.
inline Json Segment(std::uint64_t address, const std::vector<Json>& blocks,
                    std::uint64_t stream = 0, std::uint64_t device = 0) {
  return {{"device", device},
          {"address", address},
          {"stream", stream},
          {"blocks", blocks}};
}

inline Json Snapshot(const std::vector<Json>& entries,
                     const std::vector<Json>& segments = {}) {
  return {{"device_traces", std::vector<std::vector<Json>>(1, entries)},
          {"segments", segments}};
}

inline Trace ReadSnapshot(const Json& snapshot,
                          std::optional<std::uint64_t> device = std::nullopt) {
  InputBuffer input("test.pickle", PickleOf(snapshot));
  return ReadPytorchSnapshot(input, device);
}

// An `oom` entry with `device_free` bytes left on the device.
inline Json Failure(std::uint64_t bytes, std::uint64_t device_free) {
  return {{"action", "oom"},
          {"device_free", device_free},
          {"size", bytes},
          {"stream", 0},
          {"frames", Json::array()}};
}

// The error of a read, without the path.
inline std::string SnapshotError(
    const Json& snapshot, std::optional<std::uint64_t> device = std::nullopt) {
  try {
    ReadSnapshot(snapshot, device);
  } catch (const TraceError& error) {
    return std::string(error.what())
        .substr(std::string("test.pickle: ").size());
  }
  return "";
}

inline Json SizedSegment(std::uint64_t address, std::uint64_t bytes,
                         const std::vector<Json>& blocks = {}) {
  Json segment = Segment(address, blocks);
  segment["total_size"] = bytes;
  return segment;
}

}  // namespace strata::tools::snapshot_json

#endif  // STRATA_TESTS_TOOLS_READERS_SNAPSHOT_SNAPSHOT_JSON_H_
