#include "strata/tensor/tensor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <cstring>
#include <fstream>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "strata/allocation/diagnostics/allocation_log.h"
#include "strata/allocation/diagnostics/annotation.h"
#include "strata/allocation/diagnostics/tracking_allocator.h"
#include "strata/allocation/error.h"
#include "strata/allocation/system/host_allocator.h"
#include "strata/tests/facade/facade_fixture.h"
#include "strata/tests/testing/layers/counting_allocator.h"
#include "strata/tests/testing/layers/failing_allocator.h"
#include "strata/tests/testing/layers/handle_allocator.h"
#include "strata/tests/testing/layers/pool_place.h"

namespace strata {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// tf_bfc §2: Tensor.
class TensorTest : public ::testing::Test {
 protected:
  PoolPlace place_;
  std::shared_ptr<FailingAllocator> failing_ =
      std::make_shared<FailingAllocator>(place_.pool());
  CountingAllocator device_{failing_};
  CountingAllocator host_{std::make_shared<HostAllocator>()};
};

TEST_F(TensorTest, AllocatesInItsConstructor) {
  const Tensor tensor(device_, DataType::kFloat32, {2, 3});
  EXPECT_EQ(device_.allocations(), 1U);
  EXPECT_EQ(device_.last_bytes(), 24U);
  EXPECT_TRUE(tensor.IsInitialized());
  EXPECT_EQ(tensor.dtype(), DataType::kFloat32);
  EXPECT_EQ(tensor.shape(), Shape({2, 3}));
  EXPECT_EQ(tensor.size_bytes(), 24U);
  EXPECT_EQ(tensor.allocated_bytes(), tensor.allocation()->size());
  EXPECT_EQ(tensor.data(), tensor.allocation()->data());
}

TEST_F(TensorTest, WithoutElementsItAllocatesNothing) {
  const Tensor tensor(device_, DataType::kFloat32, {2, 0});
  EXPECT_EQ(device_.allocations(), 0U);
  EXPECT_TRUE(tensor.IsInitialized());
  EXPECT_EQ(tensor.data(), nullptr);
  EXPECT_EQ(tensor.allocation(), nullptr);
  EXPECT_EQ(tensor.allocated_bytes(), 0U);
}

TEST_F(TensorTest, WithoutElementsItStillGetsAHandle) {
  HandleAllocator handles;
  {
    const Tensor tensor(handles, DataType::kFloat32, {2, 0});
    EXPECT_EQ(handles.live(), 1);
    EXPECT_NE(tensor.data(), nullptr);
  }
  EXPECT_EQ(handles.live(), 0);
}

TEST_F(TensorTest, MakeGivesAHandleOrThrows) {
  const auto none =
      std::make_shared<FailingAllocator>(std::make_shared<HandleAllocator>());
  none->Fail({1});
  EXPECT_THROW(Tensor::Make(*none, DataType::kFloat32, {2, 0}), OutOfMemory);
  EXPECT_NE(Tensor::Make(*none, DataType::kFloat32, {2, 0}).data(), nullptr);
}

TEST_F(TensorTest, AHandleHasNoParts) {
  HandleAllocator handles;
  const Tensor tensor(handles, DataType::kFloat32, {4});
  EXPECT_EQ(tensor.Slice(0, 4).data(), tensor.data());
  EXPECT_THROW((void)tensor.Slice(1, 4), std::invalid_argument);
  EXPECT_THROW((void)tensor.SubSlice(0), std::invalid_argument);
}

TEST_F(TensorTest, ATensorByDefaultIsEmpty) {
  const Tensor tensor;
  EXPECT_EQ(tensor.dtype(), DataType::kFloat32);
  EXPECT_EQ(tensor.shape(), Shape({0}));
  EXPECT_TRUE(tensor.IsInitialized());
  EXPECT_FALSE(tensor.IsSoleOwner());
}

TEST_F(TensorTest, ANumberIsATensorWithoutDimensions) {
  const Tensor tensor(host_, DataType::kFloat64, {});
  EXPECT_EQ(host_.last_bytes(), 8U);
  *tensor.data<double>() = 1.5;
  EXPECT_EQ(*tensor.data<double>(), 1.5);
}

TEST_F(TensorTest, AFailedAllocationIsNoExceptionUnlessAsked) {
  failing_->Fail({1, 100});
  Failure failure;
  const Tensor tensor(device_, DataType::kInt8, {1000}, {}, &failure);
  EXPECT_FALSE(tensor.IsInitialized());
  EXPECT_EQ(tensor.data(), nullptr);
  EXPECT_EQ(tensor.shape(), Shape({1000}));
  EXPECT_EQ(failure.reason, Failure::Reason::kDeviceMemory);
  const Tensor silent(device_, DataType::kInt8, {1000});
  EXPECT_FALSE(silent.IsInitialized());
  EXPECT_THROW(Tensor::Make(device_, DataType::kInt8, {1000}), OutOfMemory);
  failing_->Fail({0});
  EXPECT_TRUE(Tensor::Make(device_, DataType::kInt8, {1000}).IsInitialized());
  EXPECT_EQ(device_.live(), 0U);
}

TEST_F(TensorTest, MoreBytesThanCanBeAddressedAreAFailure) {
  Failure failure;
  const Tensor tensor(device_, DataType::kComplex128, {std::int64_t{1} << 60},
                      {}, &failure);
  EXPECT_FALSE(tensor.IsInitialized());
  EXPECT_EQ(failure.reason, Failure::Reason::kTooLarge);
  EXPECT_EQ(device_.allocations(), 0U);
  EXPECT_THROW((void)tensor.size_bytes(), std::invalid_argument);
  EXPECT_THAT(TextOf<BadAlloc>([&] {
                Tensor::Make(device_, DataType::kComplex128,
                             {std::int64_t{1} << 60});
              }),
              AllOf(HasSubstr("tensor: cannot allocate 16.0 EiB"),
                    HasSubstr("more bytes than can be counted")));
}

TEST_F(TensorTest, NeedsAType) {
  EXPECT_THROW(Tensor(device_, DataType::kUndefined, {1}),
               std::invalid_argument);
}

TEST_F(TensorTest, CopiesShareTheBufferAndTheLastFreesIt) {
  Tensor first(device_, DataType::kFloat32, {4});
  EXPECT_TRUE(first.IsSoleOwner());
  Tensor second = first;
  EXPECT_FALSE(first.IsSoleOwner());
  EXPECT_TRUE(first.SharesBufferWith(second));
  EXPECT_EQ(device_.allocations(), 1U);
  first = Tensor();
  EXPECT_EQ(device_.live(), 1U);
  EXPECT_TRUE(second.IsSoleOwner());
  Tensor third = std::move(second);
  third = Tensor();
  EXPECT_EQ(device_.live(), 0U);
}

TEST_F(TensorTest, OneThatWasMovedFromIsANumberWithoutMemory) {
  Tensor first(device_, DataType::kFloat32, {4});
  const Tensor second = std::move(first);
  EXPECT_TRUE(second.IsSoleOwner());
  EXPECT_EQ(first.shape(), Shape());  // NOLINT(bugprone-use-after-move)
  EXPECT_EQ(first.num_elements(), 1);
  EXPECT_EQ(first.size_bytes(), 4U);
  EXPECT_FALSE(first.IsInitialized());
}

TEST_F(TensorTest, SlicesShareTheBuffer) {
  Tensor whole(host_, DataType::kInt32, {4, 3});
  for (int i = 0; i < 12; ++i) whole.data<std::int32_t>()[i] = i;
  Tensor middle = whole.Slice(1, 3);
  EXPECT_EQ(middle.shape(), Shape({2, 3}));
  EXPECT_EQ(middle.size_bytes(), 24U);
  EXPECT_EQ(middle.data<std::int32_t>()[0], 3);
  const Tensor row = middle.SubSlice(1);
  EXPECT_EQ(row.shape(), Shape({3}));
  EXPECT_EQ(row.data<std::int32_t>()[2], 8);
  EXPECT_TRUE(row.SharesBufferWith(whole));
  EXPECT_FALSE(whole.IsSoleOwner());
  EXPECT_FALSE(row.IsSoleOwner());
  whole = Tensor();
  middle = Tensor();
  EXPECT_EQ(host_.live(), 1U);
  EXPECT_EQ(row.data<std::int32_t>()[0], 6);
  EXPECT_EQ(row.SubSlice(2).shape(), Shape());
}

TEST_F(TensorTest, ASliceOfAllIsTheTensorItself) {
  const Tensor whole(host_, DataType::kInt32, {4});
  const Tensor all = whole.Slice(0, 4);
  EXPECT_EQ(all.data(), whole.data());
  EXPECT_EQ(whole.Slice(2, 2).num_elements(), 0);
}

TEST_F(TensorTest, RefusesSlicesOfWhatIsNotThere) {
  const Tensor tensor(host_, DataType::kInt32, {4});
  EXPECT_THROW(tensor.Slice(-1, 2), std::invalid_argument);
  EXPECT_THROW(tensor.Slice(3, 2), std::invalid_argument);
  EXPECT_THROW(tensor.Slice(0, 5), std::invalid_argument);
  EXPECT_THROW(tensor.SubSlice(4), std::invalid_argument);
  EXPECT_THROW(tensor.SubSlice(-1), std::invalid_argument);
  EXPECT_THROW(Tensor(host_, DataType::kInt32, {}).Slice(0, 0),
               std::invalid_argument);
}

TEST_F(TensorTest, SlicesOfNothingAreNothing) {
  failing_->Fail({1, 100});
  const Tensor failed(device_, DataType::kInt32, {4});
  EXPECT_FALSE(failed.Slice(1, 2).IsInitialized());
  EXPECT_TRUE(Tensor().Slice(0, 0).IsInitialized());
}

TEST_F(TensorTest, ReshapedSharesTheBuffer) {
  const Tensor tensor(host_, DataType::kInt32, {4, 3});
  const Tensor other = tensor.Reshaped({2, 6});
  EXPECT_EQ(other.data(), tensor.data());
  EXPECT_TRUE(other.SharesBufferWith(tensor));
  EXPECT_THROW(tensor.Reshaped({5}), std::invalid_argument);
}

TEST_F(TensorTest, DataOfAnotherTypeIsRefused) {
  const Tensor tensor(host_, DataType::kInt32, {1});
  EXPECT_THAT(TextOf<std::invalid_argument>([&] { tensor.data<float>(); }),
              AllOf(HasSubstr("int32"), HasSubstr("float32")));
  EXPECT_EQ(tensor.data<const std::int32_t>(), tensor.data());
}

TEST_F(TensorTest, AttributesGoWithTheRequest) {
  AllocationAttributes attributes;
  attributes.retry_on_failure = false;
  const Tensor tensor(device_, DataType::kInt32, {1}, attributes);
  EXPECT_EQ(device_.last_flags(), kNoRetry);
}

TEST_F(TensorTest, IsTrackedLikeAnyAllocation) {
  const auto tracker = TrackingAllocator::Make(device_);
  const Tensor tensor(*tracker, DataType::kInt32, {256});
  EXPECT_EQ(tracker->sizes().live_bytes, 1024U);
  EXPECT_EQ(tracker->AllocationId(*tensor.allocation()), 1U);
}

// tf_bfc §2: LogMemory.
class TensorLogTest : public FacadeFixture {
 protected:
  TensorLogTest() {
    Build("strata_allocation_log_file='" + path_ + "'");
    SetAnnotationStep(5);
  }
  ~TensorLogTest() override {
    SetAnnotationStep(-1);
    std::remove(path_.c_str());
  }

  // Closes the log and reads it.
  std::vector<std::string> Lines() {
    facade_.reset();
    std::vector<std::string> lines;
    std::ifstream file(path_);
    for (std::string line; std::getline(file, line);) lines.push_back(line);
    return lines;
  }

  const std::string path_ = TemporaryPath("tensor_log.json");
};

TEST_F(TensorLogTest, RecordsTheTensorAndItsEndOnce) {
  {
    const ScopedAnnotation op("MatMul");
    const Tensor tensor(facade().GetAllocator(DevicePlace(0)),
                        DataType::kFloat16, {10, 100});
    const Tensor copy = tensor;
    const Tensor slice = tensor.Slice(0, 5);
  }
  const std::vector<std::string> lines = Lines();
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_THAT(
      lines[0],
      AllOf(
          HasSubstr(R"("event":"tensor_allocation","step_id":5)"),
          HasSubstr(R"("op":"MatMul","allocator":"virtual_memory")"),
          HasSubstr(R"("allocation_id":1,"bytes":2048)"),
          HasSubstr(
              R"("requested_bytes":2000,"dtype":"float16","shape":"[10,100]")")));
  EXPECT_THAT(lines[1], AllOf(HasSubstr(R"("event":"tensor_deallocation")"),
                              HasSubstr(R"("allocation_id":1)")));
}

TEST_F(TensorLogTest, WhatIsLoggedElsewhereIsNotLoggedHere) {
  AllocationAttributes attributes;
  attributes.allocation_will_be_logged = true;
  {
    const Tensor tensor(facade().GetAllocator(DevicePlace(0)),
                        DataType::kFloat16, {10}, attributes);
    EXPECT_TRUE(tensor.IsInitialized());
  }
  EXPECT_TRUE(Lines().empty());
}

TEST_F(TensorLogTest, ATensorThatOutlivesTheFacadeIsStillRecorded) {
  Tensor tensor(facade().GetAllocator(DevicePlace(0)), DataType::kInt8, {10});
  facade_.reset();
  tensor = Tensor();
  const std::vector<std::string> lines = Lines();
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_THAT(lines[1], HasSubstr("tensor_deallocation"));
}

TEST_F(TensorLogTest, WhatIsNoTensorIsRaw) {
  facade().Alloc(DevicePlace(0), 100).reset();
  facade().Alloc(HostPlace(), 100).reset();
  facade().allocation_log()->RecordStep("train");
  const std::vector<std::string> lines = Lines();
  ASSERT_EQ(lines.size(), 5U);
  EXPECT_THAT(lines[0], AllOf(HasSubstr("raw_allocation"),
                              HasSubstr(R"("place":"device:0")")));
  EXPECT_THAT(lines[1], HasSubstr("raw_deallocation"));
  EXPECT_THAT(lines[2], HasSubstr(R"("place":"host")"));
  EXPECT_THAT(lines[4], AllOf(HasSubstr(R"("event":"step","step_id":5)"),
                              HasSubstr(R"("handle":"train")")));
}

TEST_F(TensorLogTest, TrackedTensorsAreRecordedToo) {
  {
    const auto tracker =
        TrackingAllocator::Make(facade().GetAllocator(DevicePlace(0)));
    const Tensor tensor(*tracker, DataType::kInt8, {10});
  }
  EXPECT_EQ(Lines().size(), 2U);
}

}  // namespace
}  // namespace strata
