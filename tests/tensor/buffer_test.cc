#include "strata/tensor/buffer.h"

#include <gtest/gtest.h>

#include <memory>
#include <stdexcept>
#include <string>

#include "strata/allocation/system/host_allocator.h"
#include "strata/tests/testing/layers/counting_allocator.h"
#include "strata/tests/testing/layers/failing_allocator.h"

namespace strata {
namespace {

class BufferTest : public ::testing::Test {
 protected:
  RefPtr<RawBuffer> Raw(std::size_t bytes) {
    return RefPtr<RawBuffer>(new RawBuffer(host_.Allocate(bytes), bytes));
  }
  static RefPtr<SubBuffer> Part(TensorBuffer& whole, std::size_t offset_bytes,
                                std::size_t size_bytes) {
    return RefPtr<SubBuffer>(new SubBuffer(whole, offset_bytes, size_bytes));
  }

  CountingAllocator host_{std::make_shared<HostAllocator>()};
  Failure failure_;
};

// tf_bfc §2: TensorBuffer, Buffer, SubBuffer.

TEST_F(BufferTest, RawBufferFreesWithItsLastReference) {
  RefPtr<RawBuffer> buffer = Raw(100);
  EXPECT_EQ(buffer->size_bytes(), 100U);
  EXPECT_EQ(buffer->data(), buffer->allocation()->data());
  EXPECT_EQ(&buffer->root(), buffer.get());
  RefPtr<RawBuffer> other = buffer;
  buffer = RefPtr<RawBuffer>();
  EXPECT_EQ(host_.live(), 1U);
  other = RefPtr<RawBuffer>();
  EXPECT_EQ(host_.live(), 0U);
}

TEST_F(BufferTest, AFailedAllocationIsABufferOfNull) {
  const RefPtr<RawBuffer> buffer(new RawBuffer(nullptr, 100));
  EXPECT_EQ(buffer->data(), nullptr);
  EXPECT_EQ(buffer->size_bytes(), 0U);
  EXPECT_EQ(buffer->allocation(), nullptr);
}

TEST_F(BufferTest, BufferOwnsObjects) {
  using Strings = Buffer<std::string>;
  RefPtr<Strings> buffer(new Strings(host_, 3, failure_));
  ASSERT_EQ(buffer->size(), 3U);
  EXPECT_EQ(buffer->size_bytes(), 3 * sizeof(std::string));
  buffer->objects()[2] = std::string(100, 'x');  // leaks if not destroyed
  EXPECT_EQ(buffer->data(), buffer->objects());
  buffer = RefPtr<Strings>();
  EXPECT_EQ(host_.live(), 0U);
}

TEST_F(BufferTest, BufferSaysWhyItHasNoMemory) {
  FailingAllocator failing(std::make_shared<HostAllocator>());
  failing.Fail({1, 1, Failure::Reason::kHostMemory});
  const RefPtr<Buffer<float>> buffer(new Buffer<float>(failing, 8, failure_));
  EXPECT_EQ(buffer->data(), nullptr);
  EXPECT_EQ(buffer->allocation(), nullptr);
  EXPECT_EQ(failure_.reason, Failure::Reason::kHostMemory);
}

TEST_F(BufferTest, SubBufferKeepsTheRootAlive) {
  RefPtr<RawBuffer> whole = Raw(100);
  auto* data = static_cast<std::byte*>(whole->data());
  RefPtr<SubBuffer> part = Part(*whole, 20, 50);
  RefPtr<SubBuffer> part_of_part = Part(*part, 10, 40);
  EXPECT_EQ(part->data(), data + 20);
  EXPECT_EQ(part_of_part->data(), data + 30);
  EXPECT_EQ(part_of_part->size_bytes(), 40U);
  EXPECT_EQ(&part_of_part->root(), whole.get());
  EXPECT_EQ(part_of_part->allocation(), whole->allocation());
  // It refers to the root, not to its parent part.
  EXPECT_TRUE(part->IsSoleReference());
  whole = RefPtr<RawBuffer>();
  part = RefPtr<SubBuffer>();
  EXPECT_EQ(host_.live(), 1U);
  part_of_part = RefPtr<SubBuffer>();
  EXPECT_EQ(host_.live(), 0U);
}

TEST_F(BufferTest, SubBufferIsInsideItsWhole) {
  const RefPtr<RawBuffer> whole = Raw(100);
  const RefPtr<SubBuffer> end = Part(*whole, 100, 0);
  EXPECT_THROW(Part(*whole, 0, 101), std::invalid_argument);
  EXPECT_THROW(Part(*whole, 101, 0), std::invalid_argument);
  EXPECT_THROW(Part(*whole, 1, ~std::size_t{0}), std::invalid_argument);
  EXPECT_THROW(Part(*end, 0, 1), std::invalid_argument);
  EXPECT_EQ(whole->references(), 2U);  // `end` and this one
}

}  // namespace
}  // namespace strata
