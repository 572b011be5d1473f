// The limits and reports of bfc, through a facade.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "strata/allocation/diagnostics/annotation.h"
#include "strata/allocation/error.h"
#include "strata/tests/facade/facade_fixture.h"

namespace strata {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

namespace fs = std::filesystem;
using Json = nlohmann::json;

class BfcReportsTest : public FacadeFixture {
 protected:
  BfcReportsTest() { fs::create_directory(folder_); }
  ~BfcReportsTest() override { fs::remove_all(folder_); }

  AllocatorFacade& BuildBfc(const std::string& options) {
    return Build("allocator_strategy=bfc," + options);
  }
  std::size_t LimitOf(Place place) {
    AllocationPtr allocation = facade().Alloc(place, 1);
    Failure failure;
    const Request request{Mebibytes(1024)};
    EXPECT_EQ(facade().TryAlloc(place, request,
                                facade().GetDefaultStream(place), failure),
              nullptr);
    return failure.limit_bytes;
  }
  std::vector<fs::path> Files() const {
    std::set<fs::path> sorted;
    for (const auto& entry : fs::directory_iterator(folder_)) {
      sorted.insert(entry.path());
    }
    return {sorted.begin(), sorted.end()};
  }

  const fs::path folder_ = fs::path(testing::TempDir()) /
                           ("strata_bfc_reports_" + std::to_string(getpid()));
};

// tf_bfc R59 to R61, on a simulated device with 64 MiB, all free.
TEST_F(BfcReportsTest, R59TheLimitIsKnownAtTheFirstAllocation) {
  const std::uint64_t before = CountAll();
  BuildBfc("bfc_memory_fraction=0.75");
  EXPECT_EQ(CountAll(), before);  // building makes no device call
  EXPECT_EQ(LimitOf(kPlace), Mebibytes(48));
  BuildBfc("bfc_system_memory_in_mb=24");
  EXPECT_EQ(LimitOf(kPlace), Mebibytes(40));
  BuildBfc("bfc_memory_fraction=0.5,gpu_memory_limit_mb=16");
  EXPECT_EQ(LimitOf(kPlace), Mebibytes(16));
}

TEST_F(BfcReportsTest, R61APoolThatMayGrowStartsWithItsPart) {
  BuildBfc("bfc_memory_fraction=0.25-0.75,bfc_allow_growth=false");
  AllocationPtr small = facade().Alloc(kPlace, 1);
  EXPECT_EQ(facade().GetStats(kPlace).reserved_bytes, Mebibytes(16));
  AllocationPtr large = facade().Alloc(kPlace, Mebibytes(20));
  EXPECT_EQ(facade().GetStats(kPlace).reserved_bytes, Mebibytes(48));
}

// tf_bfc R60: managed memory may exceed the memory of the device, device memory
// may not.
TEST_F(BfcReportsTest, R60OnlyManagedMemoryGoesBeyondTheDevice) {
  BuildBfc("bfc_memory_fraction=1.5,bfc_allow_growth=false");
  AllocationPtr managed = facade().Alloc(ManagedPlace(0), 1);
  EXPECT_EQ(facade().GetStats(ManagedPlace(0)).reserved_bytes, Mebibytes(96));
  managed.reset();
  facade().Release(ManagedPlace(0));
  AllocationPtr device = facade().Alloc(kPlace, 1);
  EXPECT_EQ(facade().GetStats(kPlace).reserved_bytes, Mebibytes(64));
}

TEST_F(BfcReportsTest, R60DeviceMemoryThatIsManagedGoesBeyondTheDevice) {
  BuildBfc(
      "bfc_memory_fraction=1.5,bfc_allow_growth=false,use_cuda_managed_memory");
  AllocationPtr allocation = facade().Alloc(kPlace, 1);
  EXPECT_EQ(facade().GetStats(kPlace).reserved_bytes, Mebibytes(96));
  EXPECT_EQ(LimitOf(kPlace), Mebibytes(96));
}

// tf_bfc R54, R55, R57.
TEST_F(BfcReportsTest, R55ExhaustionLeavesAMemoryMap) {
  BuildBfc("bfc_keep_annotations,bfc_memory_map_prefix=" +
           (folder_ / "oom").string());
  AllocationPtr allocation;
  {
    const ScopedAnnotation train("train");
    const ScopedAnnotation op("MatMul");
    allocation = facade().Alloc(kPlace, 1000);
  }
  EXPECT_THROW(facade().Alloc(kPlace, 2 * kMemoryBytes), OutOfMemory);
  const std::vector<fs::path> files = Files();
  ASSERT_EQ(files.size(), 1U);
  EXPECT_EQ(files.front().filename(), "oom_device_0_bfc.0");
  std::ifstream file(files.front());
  std::vector<Json> in_use;
  for (std::string line; std::getline(file, line);) {
    const Json object = Json::parse(line);
    if (object.contains("chunk") && object["chunk"]["in_use"] == true) {
      in_use.push_back(object["chunk"]);
    }
  }
  ASSERT_EQ(in_use.size(), 1U);
  EXPECT_EQ(in_use[0]["size"], 1024);
  EXPECT_EQ(in_use[0]["requested_size"], 1000);
  EXPECT_EQ(in_use[0]["op_name"], "MatMul");
  EXPECT_EQ(in_use[0]["annotation"], "train / MatMul");
}

TEST_F(BfcReportsTest, R55RequestsThatAreMetLeaveNone) {
  BuildBfc("bfc_garbage_collection=false,bfc_memory_map_prefix=" +
           (folder_ / "oom").string());
  facade().Alloc(kPlace, Mebibytes(20)).reset();
  // Succeeds only after the ladder released that region.
  EXPECT_NE(facade().Alloc(kPlace, kMemoryBytes), nullptr);
  EXPECT_TRUE(Files().empty());
}

// tf_bfc R53.
TEST_F(BfcReportsTest, R53ExhaustionIsLoggedIfAsked) {
  BuildBfc("bfc_memory_log_lines=40");
  AllocationPtr allocation = facade().Alloc(kPlace, 1000);
  testing::internal::CaptureStderr();
  EXPECT_THROW(facade().Alloc(kPlace, 2 * kMemoryBytes), OutOfMemory);
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              AllOf(HasSubstr("memory log for a request of 128.0 MiB"),
                    HasSubstr("1.0 KiB (1024): 1 chunk"),
                    HasSubstr("of 64.0 MiB (67108864) allowed")));
  BuildBfc("");
  testing::internal::CaptureStderr();
  EXPECT_THROW(facade().Alloc(kPlace, 2 * kMemoryBytes), OutOfMemory);
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              Not(HasSubstr("memory log")));
}

// Both reports are written; neither replaces the other.
TEST_F(BfcReportsTest, R53R55BothReportsOfOneExhaustion) {
  BuildBfc("bfc_memory_log_lines=5,bfc_memory_map_prefix=" +
           (folder_ / "oom").string());
  testing::internal::CaptureStderr();
  EXPECT_THROW(facade().Alloc(kPlace, 2 * kMemoryBytes), OutOfMemory);
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("memory log"));
  EXPECT_EQ(Files().size(), 1U);
}

}  // namespace
}  // namespace strata
