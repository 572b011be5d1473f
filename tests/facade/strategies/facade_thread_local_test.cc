// Streams of two threads over thread_local, with waits on the device.

#include <gtest/gtest.h>

#include <cstddef>
#include <thread>
#include <vector>

#include "strata/base/size.h"
#include "strata/facade/allocator_facade.h"
#include "strata/tests/facade/facade_fixture.h"

namespace strata {
namespace {

class FacadeThreadLocalTest : public FacadeFixture {
 protected:
  FacadeThreadLocalTest() : FacadeFixture(1, "manual") {
    EXPECT_EQ(device().MemAlloc(&scratch_, 4096), Status::kSuccess);
    Build(
        "allocator_strategy=thread_local,strata_cross_stream_wait,"
        "initial_gpu_memory_in_mb=4,reallocate_gpu_memory_in_mb=4");
  }
  ~FacadeThreadLocalTest() override {
    facade_.reset();
    EXPECT_EQ(device().MemFree(scratch_), Status::kSuccess);
  }

  // Frees a block while work of its stream uses it; returns its address.
  void* UseAndFree(Stream stream) {
    AllocationPtr block = facade().Alloc(kPlace, 4096, stream);
    void* const data = block->data();
    EXPECT_EQ(device().MemsetAsync(scratch_, 1, 64, stream), Status::kSuccess);
    block.reset();
    return data;
  }

  DevicePtr scratch_ = 0;
  const Stream own_ = NewStream();
  const Stream other_ = NewStream();
};

TEST_F(FacadeThreadLocalTest, StreamsOfTwoThreadsStayIndependent) {
  const CallLog log(device());
  for (int i = 0; i < 3; ++i) {
    void* const mine = UseAndFree(own_);
    std::thread([&] { EXPECT_NE(UseAndFree(other_), mine); }).join();
  }
  EXPECT_EQ(log.Of(DeviceCall::kStreamWaitEvent).size(), 0U);
}

TEST_F(FacadeThreadLocalTest, StreamsOfOneThreadAreOrdered) {
  const CallLog log(device());
  void* const freed = UseAndFree(other_);
  EXPECT_EQ(UseAndFree(own_), freed);
  EXPECT_EQ(log.Of(DeviceCall::kStreamWaitEvent).size(), 1U);
}

// A block of this thread's pool is freed by the other thread.
TEST_F(FacadeThreadLocalTest, AThreadWaitsForFreesIntoItsOwnPool) {
  AllocationPtr block = facade().Alloc(kPlace, 4096, other_);
  void* const freed = block->data();
  const CallLog log(device());
  std::thread([&] {
    EXPECT_EQ(device().MemsetAsync(scratch_, 1, 64, other_), Status::kSuccess);
    block.reset();
  }).join();
  EXPECT_EQ(UseAndFree(own_), freed);
  EXPECT_EQ(log.Of(DeviceCall::kStreamWaitEvent).size(), 1U);
}

// The device is full of idle chunks of this thread's pool.
TEST_F(FacadeThreadLocalTest, MemoryPassesToAnotherPoolAfterItsWork) {
  std::vector<AllocationPtr> blocks;
  Failure failure;
  const Request request{.bytes = Mebibytes(3), .flags = kNoRetry};
  do {
    blocks.push_back(facade().TryAlloc(kPlace, request, own_, failure));
  } while (blocks.back() != nullptr);
  EXPECT_EQ(device().MemsetAsync(scratch_, 1, 64, own_), Status::kSuccess);
  blocks.clear();
  const CallLog log(device());
  std::thread([&] {
    const AllocationPtr block = facade().Alloc(kPlace, Mebibytes(3), other_);
    const bool is_ordered = !log.Of(DeviceCall::kStreamWaitEvent).empty();
    EXPECT_TRUE(is_ordered || !device().Step(own_));
  }).join();
}

}  // namespace
}  // namespace strata
