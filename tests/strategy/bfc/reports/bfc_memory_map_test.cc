#include <gtest/gtest.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "strata/strategy/bfc/reports/memory_map.h"
#include "strata/strategy/bfc/reports/snapshot.h"
#include "strata/tests/strategy/bfc/reports/bfc_snapshot_builder.h"
#include "strata/tests/testing/heap_call_counter.h"
#include "strata/tests/testing/layers/pool_place.h"

namespace strata {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

BfcSnapshot ExampleMap() {
  BfcSnapshotBuilder builder;
  builder.Region()
      .InUse(100, 256, "train / \"MatMul\"")
      .Free(512, /*freed_at_count=*/7)
      .InUse(300, 512);
  builder.snapshot().chunks[0].op_name = "\"MatMul\"";
  builder.snapshot().chunks[0].step_id = 3;
  builder.snapshot().size_history = {{1, 256}, {3, 768}};
  return builder.snapshot();
}

// Each line is an object with one key. Returns the values of that key, in
// order.
std::vector<Json> Values(const std::string& map, const std::string& key) {
  std::vector<Json> values;
  std::istringstream stream(map);
  for (std::string line; std::getline(stream, line);) {
    const Json object = Json::parse(line);
    EXPECT_EQ(object.size(), 1U) << line;
    if (object.contains(key)) values.push_back(object[key]);
  }
  return values;
}

std::string MapOf(const BfcSnapshot& snapshot) {
  std::ostringstream text;
  WriteMemoryMap(snapshot, text);
  return text.str();
}

TEST(BfcMemoryMapTest, TellsWhatIsDeferred) {
  BfcSnapshot example = ExampleMap();
  example.chunks[2].deferred = true;
  const auto chunks = Values(MapOf(example), "chunk");
  ASSERT_EQ(chunks.size(), 3U);
  EXPECT_FALSE(chunks[0].contains("deferred"));
  EXPECT_EQ(chunks[2]["in_use"], true);
  EXPECT_EQ(chunks[2]["deferred"], true);
}

// tf_bfc R54: MemChunk for every chunk.
TEST(BfcMemoryMapTest, R54HasEveryChunk) {
  const BfcSnapshot example = ExampleMap();
  const auto chunks = Values(MapOf(example), "chunk");
  ASSERT_EQ(chunks.size(), 3U);
  EXPECT_EQ(chunks[0], (Json{{"address", example.chunks[0].address},
                             {"size", 256},
                             {"requested_size", 100},
                             {"bin", -1},
                             {"op_name", "\"MatMul\""},
                             {"action_count", 1},
                             {"in_use", true},
                             {"step_id", 3},
                             {"annotation", "train / \"MatMul\""}}));
  EXPECT_EQ(chunks[1], (Json{{"address", example.chunks[1].address},
                             {"size", 512},
                             {"requested_size", 0},
                             {"bin", 1},
                             {"op_name", ""},
                             {"action_count", 2},
                             {"in_use", false},
                             {"step_id", -1},
                             {"annotation", ""}}));
}

TEST(BfcMemoryMapTest, R54HasCountsOnlyWithATimingCounter) {
  BfcSnapshot example = ExampleMap();
  example.has_timing_counter = true;
  example.chunks[0].freed_at_count = 5;  // from before its current use
  const auto chunks = Values(MapOf(example), "chunk");
  EXPECT_EQ(chunks.at(0)["freed_at_count"], 0);
  EXPECT_EQ(chunks.at(1)["freed_at_count"], 7);
}

TEST(BfcMemoryMapTest, R54HasTheOtherFields) {
  const BfcSnapshot example = ExampleMap();
  const std::string map = MapOf(example);
  EXPECT_EQ(Values(map, "allocator_name"), std::vector<Json>{"device:0_bfc"});
  const auto bins = Values(map, "bin_summary");
  ASSERT_EQ(bins.size(), 21U);
  EXPECT_EQ(bins[1], (Json{{"bin", 1},
                           {"total_bytes_in_use", 512},
                           {"total_bytes_in_bin", 1024},
                           {"total_chunks_in_use", 1},
                           {"total_chunks_in_bin", 2}}));
  EXPECT_EQ(bins[20]["bin"], 20);
  EXPECT_EQ(Values(map, "snap_shot"),
            (std::vector<Json>{{{"action_count", 1}, {"size", 256}},
                               {{"action_count", 3}, {"size", 768}}}));
  EXPECT_EQ(Values(map, "stats"),
            (std::vector<Json>{{{"num_allocs", 2},
                                {"bytes_in_use", 768},
                                {"peak_bytes_in_use", 768},
                                {"largest_alloc_size", 512},
                                {"fragmentation_metric", 0}}}));
}

class BfcMemoryMapSinkTest : public ::testing::Test {
 protected:
  BfcMemoryMapSinkTest() { fs::create_directory(folder_); }
  ~BfcMemoryMapSinkTest() override { fs::remove_all(folder_); }

  std::size_t FileCount() const {
    std::size_t count = 0;
    for (const auto& entry : fs::directory_iterator(folder_)) {
      count += entry.is_regular_file() ? 1U : 0U;
    }
    return count;
  }
  static std::string ContentOf(const fs::path& path) {
    std::ostringstream text;
    text << std::ifstream(path).rdbuf();
    return text.str();
  }

  const fs::path folder_ = TemporaryPath("memory_maps");
  const std::string prefix_ = folder_ / "oom";
};

// tf_bfc R55: <prefix>_<allocator name>.<n>.
TEST_F(BfcMemoryMapSinkTest, R55WritesAFileForEachSnapshot) {
  const MemoryMapSink sink = MakeMemoryMapSink(prefix_);
  EXPECT_EQ(FileCount(), 0U);
  sink(ExampleMap());
  sink(BfcSnapshotBuilder().snapshot());
  EXPECT_EQ(ContentOf(folder_ / "oom_device_0_bfc.0"), MapOf(ExampleMap()));
  EXPECT_EQ(ContentOf(folder_ / "oom_device_0_bfc.1"),
            MapOf(BfcSnapshotBuilder().snapshot()));
  EXPECT_EQ(FileCount(), 2U);
}

TEST_F(BfcMemoryMapSinkTest, R55NeverOverwrites) {
  std::ofstream(folder_ / "oom_device_0_bfc.0") << "of an earlier run";
  MakeMemoryMapSink(prefix_)(ExampleMap());
  MakeMemoryMapSink(prefix_)(ExampleMap());
  EXPECT_EQ(ContentOf(folder_ / "oom_device_0_bfc.0"), "of an earlier run");
  EXPECT_EQ(FileCount(), 3U);
}

TEST_F(BfcMemoryMapSinkTest, R55NamesOfAllocatorsMakeFileNames) {
  BfcSnapshot odd = ExampleMap();
  odd.allocator_name = "../a b";
  MakeMemoryMapSink(prefix_)(odd);
  EXPECT_TRUE(fs::exists(folder_ / "oom_device_0_.._a_b.0"));
}

TEST_F(BfcMemoryMapSinkTest, StopsBeforeTheDiskIsFull) {
  const MemoryMapSink sink = MakeMemoryMapSink(prefix_);
  const BfcSnapshot empty;
  for (int i = 0; i < kMostMemoryMaps + 5; ++i) sink(empty);
  EXPECT_EQ(FileCount(), static_cast<std::size_t>(kMostMemoryMaps));
}

TEST_F(BfcMemoryMapSinkTest, AFileThatCannotBeWrittenIsNoError) {
  const MemoryMapSink sink = MakeMemoryMapSink(folder_ / "none" / "oom");
  ::testing::internal::CaptureStderr();
  EXPECT_NO_THROW(sink(ExampleMap()));
  EXPECT_NO_THROW(sink(ExampleMap()));
  const std::string log = ::testing::internal::GetCapturedStderr();
  const std::size_t first = log.find("bfc_memory_map_prefix: cannot write");
  EXPECT_NE(first, std::string::npos) << log;
  EXPECT_NE(log.find("No such file"), std::string::npos) << log;
  EXPECT_EQ(log.find("cannot write", first + 30), std::string::npos) << log;
}

// Wherever the host runs out of memory: a map is complete, or absent.
TEST_F(BfcMemoryMapSinkTest, WritesNoPartOfAMap) {
  if (!HeapFailure::is_possible()) GTEST_SKIP() << "a heap that never fails";
  const BfcSnapshot example = ExampleMap();
  const std::string whole = MapOf(example);
  bool has_failed = true;
  for (std::uint64_t nth = 1; has_failed; ++nth) {
    const MemoryMapSink sink = MakeMemoryMapSink(prefix_);
    {
      const HeapFailure failure(nth);
      sink(example);
      has_failed = failure.calls() >= nth;
    }
    for (const auto& entry : fs::directory_iterator(folder_)) {
      ASSERT_EQ(ContentOf(entry.path()), whole) << nth;
    }
  }
  EXPECT_NE(FileCount(), 0U);
}

TEST_F(BfcMemoryMapSinkTest, CopiesShareOneCountOfFiles) {
  const MemoryMapSink sink = MakeMemoryMapSink(prefix_);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([copy = sink] {
      for (int i = 0; i < 5; ++i) copy(ExampleMap());
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(FileCount(), 20U);
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(ContentOf(folder_ / ("oom_device_0_bfc." + std::to_string(i))),
              MapOf(ExampleMap()));
  }
}

}  // namespace
}  // namespace strata
