#include "strata/tensor/dense_tensor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>

#include "strata/allocation/error.h"
#include "strata/allocation/system/host_allocator.h"
#include "strata/tests/facade/facade_fixture.h"
#include "strata/tests/testing/layers/counting_allocator.h"
#include "strata/tests/testing/layers/failing_allocator.h"

namespace strata {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

DenseTensor Of(Shape dims, DataType dtype = DataType::kFloat32) {
  DenseTensorMeta meta;
  meta.dtype = dtype;
  meta.dims = std::move(dims);
  return DenseTensor(meta);
}

class DenseTensorTest : public ::testing::Test {
 protected:
  std::shared_ptr<FailingAllocator> failing_ =
      std::make_shared<FailingAllocator>(std::make_shared<HostAllocator>());
  CountingAllocator host_{failing_};
};

TEST_F(DenseTensorTest, HasNothingAtFirst) {
  const DenseTensor tensor;
  EXPECT_FALSE(tensor.initialized());
  EXPECT_EQ(tensor.numel(), 0);
  EXPECT_EQ(tensor.data(), nullptr);
  EXPECT_EQ(tensor.capacity_bytes(), 0U);
  EXPECT_THROW(tensor.place(), std::logic_error);
}

TEST_F(DenseTensorTest, AllocatesForItsElements) {
  DenseTensor tensor = Of({2, 3});
  void* data = tensor.AllocateFrom(host_, DataType::kFloat32);
  EXPECT_EQ(host_.last_bytes(), 24U);
  EXPECT_EQ(data, tensor.data());
  EXPECT_EQ(data, tensor.data<float>());
  EXPECT_TRUE(tensor.initialized());
  EXPECT_EQ(tensor.place(), HostPlace());
}

TEST_F(DenseTensorTest, TakesTheTypeItIsAllocatedAs) {
  DenseTensor tensor = Of({2, 3});
  tensor.AllocateFrom(host_, DataType::kFloat64);
  EXPECT_EQ(tensor.dtype(), DataType::kFloat64);
  EXPECT_EQ(host_.last_bytes(), 48U);
  EXPECT_THAT(TextOf<std::invalid_argument>([&] { tensor.data<float>(); }),
              AllOf(HasSubstr("float64"), HasSubstr("float32")));
}

TEST_F(DenseTensorTest, KeepsAHolderThatIsLargeEnough) {
  DenseTensor tensor = Of({6});
  void* data = tensor.AllocateFrom(host_, DataType::kFloat32);
  tensor.Resize({3});
  EXPECT_EQ(tensor.AllocateFrom(host_, DataType::kFloat64), data);
  EXPECT_EQ(host_.allocations(), 1U);
  tensor.Resize({4});
  tensor.AllocateFrom(host_, DataType::kFloat64);
  EXPECT_EQ(host_.allocations(), 2U);
  EXPECT_EQ(host_.live(), 1U);
}

TEST_F(DenseTensorTest, TheOffsetCountsAgainstTheHolder) {
  DenseTensor whole = Of({8});
  whole.AllocateFrom(host_, DataType::kFloat32);
  DenseTensorMeta meta = whole.meta();
  meta.offset_bytes = 16;
  meta.dims = Shape({4});
  DenseTensor part(meta);
  part.ResetHolder(whole.holder());
  EXPECT_EQ(part.meta().offset_bytes, 0U);
  DenseTensor at_offset = whole;
  at_offset.SetOffset(16);
  at_offset.Resize({4});
  EXPECT_EQ(at_offset.AllocateFrom(host_, DataType::kFloat32),
            static_cast<std::byte*>(whole.data()) + 16);
  EXPECT_EQ(host_.allocations(), 1U);
  at_offset.Resize({5});
  at_offset.AllocateFrom(host_, DataType::kFloat32);
  EXPECT_EQ(host_.allocations(), 2U);
  EXPECT_EQ(at_offset.meta().offset_bytes, 0U);
}

TEST_F(DenseTensorTest, MakesRoomForTheRequestedSize) {
  DenseTensor tensor = Of({2});
  tensor.AllocateFrom(host_, DataType::kFloat32, 100);
  EXPECT_EQ(host_.last_bytes(), 100U);
  EXPECT_EQ(tensor.capacity_bytes(), 100U);
  tensor.Resize({25});
  tensor.AllocateFrom(host_, DataType::kFloat32);
  EXPECT_EQ(host_.allocations(), 1U);
}

TEST_F(DenseTensorTest, ARequestedSizeBelowTheElementsNamesBoth) {
  DenseTensor tensor = Of({10});
  EXPECT_THAT(TextOf<std::invalid_argument>(
                  [&] { tensor.AllocateFrom(host_, DataType::kFloat32, 39); }),
              AllOf(HasSubstr("39"), HasSubstr("40")));
  EXPECT_FALSE(tensor.initialized());
  EXPECT_NO_THROW(tensor.AllocateFrom(host_, DataType::kFloat32, 40));
}

TEST_F(DenseTensorTest, AFakeAllocationAsksForNothing) {
  DenseTensor tensor = Of({1000});
  EXPECT_EQ(tensor.AllocateFrom(host_, DataType::kInt8, 0, true), nullptr);
  EXPECT_EQ(host_.allocations(), 0U);
  EXPECT_NE(tensor.holder(), nullptr);
  EXPECT_FALSE(tensor.initialized());
  EXPECT_EQ(tensor.dtype(), DataType::kInt8);
  // It does not check an unused size either.
  EXPECT_EQ(tensor.AllocateFrom(host_, DataType::kInt8, 1, true), nullptr);
  EXPECT_NE(tensor.AllocateFrom(host_, DataType::kInt8), nullptr);
}

TEST_F(DenseTensorTest, AFailureLeavesItAlone) {
  DenseTensor tensor = Of({4});
  void* data = tensor.AllocateFrom(host_, DataType::kFloat32);
  tensor.Resize({400});
  failing_->Fail({1, 100, Failure::Reason::kHostMemory});
  EXPECT_THROW(tensor.AllocateFrom(host_, DataType::kInt8), OutOfMemory);
  EXPECT_EQ(tensor.data(), data);
  EXPECT_EQ(tensor.dtype(), DataType::kFloat32);
  EXPECT_THROW(tensor.AllocateFrom(host_, DataType::kUndefined),
               std::invalid_argument);
}

TEST_F(DenseTensorTest, MoreBytesThanCanBeAddressedAreRefused) {
  DenseTensor tensor = Of({std::int64_t{1} << 61});
  EXPECT_THROW(tensor.AllocateFrom(host_, DataType::kFloat64),
               std::invalid_argument);
}

// For any offset.
TEST_F(DenseTensorTest, AFakeAllocationKeepsTheMemory) {
  DenseTensor tensor = Of({4});
  tensor.AllocateFrom(host_, DataType::kFloat32);
  const auto holder = tensor.holder();
  tensor.SetOffset(4096);
  tensor.AllocateFrom(host_, DataType::kFloat32, 0, /*fake_alloc=*/true);
  EXPECT_EQ(tensor.holder(), holder);
  EXPECT_EQ(host_.allocations(), 1U);
}

// A wrapped count would give 16 bytes.
TEST_F(DenseTensorTest, NoShapeHasMoreBytesThanCanBeAddressed) {
  const Shape too_large({(std::int64_t{1} << 62) + 4});
  DenseTensor tensor = Of({4});
  EXPECT_THROW(tensor.Resize(too_large), std::invalid_argument);
  EXPECT_EQ(tensor.dims(), Shape({4}));
  EXPECT_EQ(tensor.size_bytes(), 16U);
  EXPECT_THROW(Of(too_large), std::invalid_argument);
  // With elements of one byte the shape has fewer bytes, and is valid.
  DenseTensor bytes = Of(too_large, DataType::kInt8);
  for (const bool fake : {false, true}) {
    EXPECT_THROW(bytes.AllocateFrom(host_, DataType::kFloat32, 0, fake),
                 std::invalid_argument);
  }
  EXPECT_EQ(bytes.dtype(), DataType::kInt8);
  EXPECT_EQ(host_.allocations(), 0U);
}

template <class TensorOf, class T>
concept HasDataOf = requires(const TensorOf& tensor) {
  tensor.template data<T>();
};

// A tensor without a type has no data of any type, or of an unnamed one.
TEST_F(DenseTensorTest, WithoutATypeItHasNoData) {
  DenseTensor tensor;
  tensor.ResetHolder(std::shared_ptr<Allocation>(host_.Allocate(64)));
  EXPECT_NE(tensor.data(), nullptr);
  EXPECT_THAT(TextOf<std::invalid_argument>([&] { tensor.data<float>(); }),
              HasSubstr("undefined"));
  static_assert(!HasDataOf<DenseTensor, std::string>);
  static_assert(!HasDataOf<DenseTensor, char*>);
  static_assert(HasDataOf<DenseTensor, double>);
}

TEST_F(DenseTensorTest, DataMayBeLookedAtAsConst) {
  DenseTensor tensor = Of({4});
  const float* data = tensor.data<const float>();
  EXPECT_EQ(data, nullptr);
  tensor.AllocateFrom(host_, DataType::kInt64);
  EXPECT_EQ(tensor.data<const std::int64_t>(), tensor.data());
  // NOLINTNEXTLINE(google-runtime-int)
  EXPECT_EQ(tensor.data<long long>(), tensor.data());
}

TEST_F(DenseTensorTest, OneThatWasMovedFromHasNothing) {
  static_assert(std::is_nothrow_move_constructible_v<DenseTensor>);
  DenseTensor first = Of({4});
  void* data = first.AllocateFrom(host_, DataType::kFloat32, 100);
  first.SetOffset(16);
  DenseTensor second = std::move(first);
  EXPECT_EQ(second.data(), static_cast<std::byte*>(data) + 16);
  const auto expect_nothing = [](const DenseTensor& tensor) {
    EXPECT_FALSE(tensor.initialized());
    EXPECT_EQ(tensor.dims(), Shape());
    EXPECT_EQ(tensor.size_bytes(), 0U);
    EXPECT_EQ(tensor.dtype(), DataType::kUndefined);
    EXPECT_EQ(tensor.meta().offset_bytes, 0U);
  };
  expect_nothing(first);  // NOLINT(bugprone-use-after-move)
  first = std::move(second);
  expect_nothing(second);  // NOLINT(bugprone-use-after-move)
  EXPECT_EQ(first.dims(), Shape({4}));
  DenseTensor& same = first;
  first = std::move(same);
  EXPECT_EQ(first.data(), static_cast<std::byte*>(data) + 16);
  EXPECT_EQ(host_.live(), 1U);
}

TEST_F(DenseTensorTest, CopiesShareUntilOneAllocatesAnew) {
  DenseTensor first = Of({4});
  first.AllocateFrom(host_, DataType::kFloat32);
  DenseTensor second;
  second.ShareDataWith(first);
  EXPECT_TRUE(second.IsSharedWith(first));
  EXPECT_EQ(second.data(), first.data());
  second.Resize({40});
  second.AllocateFrom(host_, DataType::kFloat32);
  EXPECT_FALSE(second.IsSharedWith(first));
  first.ResetHolder(nullptr);
  second.ResetHolder(nullptr);
  EXPECT_EQ(host_.live(), 0U);
}

}  // namespace
}  // namespace strata
