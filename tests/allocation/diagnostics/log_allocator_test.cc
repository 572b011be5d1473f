#include "strata/allocation/diagnostics/log_allocator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "strata/allocation/decorators/registry.h"
#include "strata/allocation/diagnostics/allocation_log.h"
#include "strata/allocation/diagnostics/annotation.h"
#include "strata/tests/testing/layers/failing_allocator.h"
#include "strata/tests/testing/layers/pool_place.h"

namespace strata {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

std::vector<std::string> LinesOf(const std::string& path) {
  std::vector<std::string> lines;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

std::string Hex(const void* data) {
  std::ostringstream text;
  text << "\"address\":\"0x" << std::hex
       << reinterpret_cast<std::uintptr_t>(data) << '"';
  return text.str();
}

// tf_bfc §2: LogMemory.
class LogAllocatorTest : public ::testing::Test {
 protected:
  ~LogAllocatorTest() override {
    SetAnnotationStep(-1);
    std::remove(path_.c_str());
  }

  // Closes the log and reads it.
  std::vector<std::string> Lines() {
    layer_.reset();
    log_.reset();
    return LinesOf(path_);
  }

  PoolPlace place_;
  const std::string path_ = TemporaryPath("allocation_log.json");
  std::shared_ptr<FailingAllocator> below_ =
      std::make_shared<FailingAllocator>(place_.pool());
  std::shared_ptr<AllocationLog> log_ = std::make_shared<AllocationLog>(path_);
  std::shared_ptr<LogAllocator> layer_ =
      std::make_shared<LogAllocator>(below_, log_);
};

TEST_F(LogAllocatorTest, TheChainsOfAFacadeShareTheLog) {
  DecoratorOptions options;
  ChainContext context;
  context.facade_services = std::make_shared<SharedServices>();
  EXPECT_EQ(AllocationLogOf(options, context), nullptr);
  options.allocation_log_path = path_;
  const auto log = AllocationLogOf(options, context);
  EXPECT_EQ(AllocationLogOf(options, context), log);
  context.facade_services = std::make_shared<SharedServices>();
  EXPECT_NE(AllocationLogOf(options, context), log);
}

TEST_F(LogAllocatorTest, SaysWhoAllocatedWhat) {
  SetAnnotationStep(17);
  const ScopedAnnotation op("conv1");
  AllocationPtr allocation = layer_->Allocate(1000);
  const std::string address = Hex(allocation->data());
  allocation.reset();
  const std::vector<std::string> lines = Lines();
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_EQ(lines[0],
            R"({"event":"raw_allocation","step_id":17,"op":"conv1",)"
            R"("allocator":"failing","place":"device:0",)" +
                address +
                R"(,"allocation_id":1,"bytes":1000,"requested_bytes":1000})");
  EXPECT_EQ(lines[1],
            R"({"event":"raw_deallocation","step_id":17,"op":"conv1",)"
            R"("allocator":"failing","place":"device:0",)" +
                address + R"(,"allocation_id":1})");
}

TEST_F(LogAllocatorTest, LeavesOutWhatItsCallerRecords) {
  Request request{1000};
  request.flags = kWillBeLogged;
  layer_->Allocate(request).reset();
  EXPECT_THAT(Lines(), IsEmpty());
}

TEST_F(LogAllocatorTest, LeavesOutFailures) {
  below_->Fail({1, 100});
  Failure failure;
  EXPECT_EQ(layer_->AllocateOrNull(Request{1000}, failure), nullptr);
  EXPECT_THAT(Lines(), IsEmpty());
}

TEST_F(LogAllocatorTest, ADeallocationHasTheNumberOfItsAllocation) {
  AllocationPtr first = layer_->Allocate(1);
  AllocationPtr second = layer_->Allocate(2);
  first.reset();
  AllocationPtr third = layer_->Allocate(3);
  second.reset();
  third.reset();
  std::vector<std::string> ids;
  for (const std::string& line : Lines()) {
    const std::string key = "\"allocation_id\":";
    ids.push_back(line.substr(line.find(key) + key.size(), 1));
  }
  EXPECT_THAT(ids, ::testing::ElementsAre("1", "2", "1", "3", "2", "3"));
}

TEST_F(LogAllocatorTest, WithoutAStepOrOperationItSaysSo) {
  layer_->Allocate(1000).reset();
  EXPECT_THAT(Lines()[0], HasSubstr(R"("step_id":-1,"op":"")"));
}

TEST_F(LogAllocatorTest, TheOperationIsThatOfTheCallingThread) {
  const ScopedAnnotation op("mine");
  AllocationPtr allocation;
  std::thread([&] {
    SetAnnotationStep(3);
    const ScopedAnnotation other("other");
    allocation = layer_->Allocate(10);
  }).join();
  allocation.reset();
  const std::vector<std::string> lines = Lines();
  EXPECT_THAT(lines[0], HasSubstr(R"("step_id":3,"op":"other")"));
  EXPECT_THAT(lines[1], HasSubstr(R"("step_id":-1,"op":"mine")"));
}

TEST_F(LogAllocatorTest, NamesAreQuoted) {
  const ScopedAnnotation op("a\"b\\c\nd");
  log_->RecordStep("tab\t");
  EXPECT_EQ(Lines(),
            std::vector<std::string>{
                R"({"event":"step","step_id":-1,"op":"a\"b\\c\u000ad",)"
                R"("handle":"tab\u0009"})"});
}

TEST_F(LogAllocatorTest, TensorsHaveTheirOwnRecords) {
  Request request{24};
  request.flags = kWillBeLogged;
  AllocationPtr allocation = layer_->Allocate(request);
  const std::uint64_t id = log_->RecordTensorAllocation(
      *allocation, *allocation->owner(), "float32", "[2,3]");
  EXPECT_EQ(id, 1U);
  log_->RecordTensorDeallocation(id, *allocation, *allocation->owner());
  allocation.reset();
  const std::vector<std::string> lines = Lines();
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_THAT(lines[0],
              AllOf(StartsWith(R"({"event":"tensor_allocation")"),
                    HasSubstr(R"("requested_bytes":24)"),
                    HasSubstr(R"("dtype":"float32","shape":"[2,3]")")));
  EXPECT_THAT(lines[1], AllOf(StartsWith(R"({"event":"tensor_deallocation")"),
                              HasSubstr(R"("allocation_id":1)")));
}

TEST_F(LogAllocatorTest, AFileThatCannotBeWrittenIsNamed) {
  try {
    const AllocationLog log("/no/such/folder/log.json");
    FAIL() << "there is no such folder";
  } catch (const std::invalid_argument& error) {
    EXPECT_THAT(error.what(), AllOf(HasSubstr("strata_allocation_log_file"),
                                    HasSubstr("/no/such/folder/log.json")));
  }
}

TEST_F(LogAllocatorTest, TheCarverIsTheLayerAboveTheChunkPool) {
  EXPECT_STREQ(CarvingLayer(*layer_).name(), "failing");
  EXPECT_STREQ(CarvingLayer(*place_.system()).name(), "device");
}

TEST_F(LogAllocatorTest, ThreadsWriteWholeLines) {
  constexpr int kThreads = 4;
  constexpr int kRounds = 200;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([this] {
      for (int i = 0; i < kRounds; ++i) layer_->Allocate(256).reset();
    });
  }
  for (std::thread& thread : threads) thread.join();
  const std::vector<std::string> lines = Lines();
  EXPECT_EQ(lines.size(), 2U * kThreads * kRounds);
  for (const std::string& line : lines) {
    EXPECT_THAT(
        line, AllOf(StartsWith(R"({"event":"raw_)"), ::testing::EndsWith("}")));
  }
}

}  // namespace
}  // namespace strata
