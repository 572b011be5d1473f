// Pinned memory that the work of streams uses.

#include <gtest/gtest.h>

#include <cstddef>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "strata/facade/allocator_facade.h"
#include "strata/tests/facade/host/facade_host_fixture.h"

namespace strata {
namespace {

// cuda_semantics.md M7: the host writes a block at once. So a pooled block may
// be reused only after the work of every named stream is complete. Here, work
// runs only when the host waits for it.
class PinnedReuseTest : public testing::TestWithParam<std::string> {
 protected:
  static constexpr Place kPinned = PinnedPlace(0);
  static constexpr std::size_t kBytes = 4096;

  void SetUp() override {
    PlatformOptions options;
    options.sim_memory_bytes = Mebibytes(64);
    options.sim_data = "backed";
    options.sim_progress = "lazy";
    platform_ = std::make_shared<SimPlatform>(options);
    facade_ = std::make_unique<AllocatorFacade>(
        Options::Parse("strata_pinned_strategy=" + GetParam()), platform_);
    ASSERT_EQ(device().StreamCreate(&stream_, kStreamNonBlocking),
              Status::kSuccess);
    target_ = facade_->Alloc(DevicePlace(0), kBytes);
  }
  void TearDown() override {
    target_.reset();
    facade_.reset();
    EXPECT_EQ(device().StreamDestroy(stream_), Status::kSuccess);
  }

  SimDevice& device() { return platform_->sim_device(0); }
  static DevicePtr PtrOf(const AllocationPtr& allocation) {
    return reinterpret_cast<DevicePtr>(allocation->data());
  }
  // A pinned block full of `value`. A copy in stream_ will read it.
  AllocationPtr Submit(int value) {
    AllocationPtr source = facade_->Alloc(kPinned, kBytes);
    std::memset(source->data(), value, kBytes);
    EXPECT_EQ(
        device().MemcpyAsync(PtrOf(target_), PtrOf(source), kBytes, stream_),
        Status::kSuccess);
    return source;
  }
  // The byte that the copy wrote to the device.
  int Arrived() {
    std::vector<unsigned char> bytes(kBytes);
    EXPECT_EQ(device().MemcpyAsync(reinterpret_cast<DevicePtr>(bytes.data()),
                                   PtrOf(target_), kBytes, stream_),
              Status::kSuccess);
    EXPECT_EQ(device().StreamSynchronize(stream_), Status::kSuccess);
    for (const unsigned char byte : bytes) EXPECT_EQ(byte, bytes[0]);
    return bytes[0];
  }

  std::shared_ptr<SimPlatform> platform_;
  std::unique_ptr<AllocatorFacade> facade_;
  Stream stream_;
  AllocationPtr target_;
};

TEST_P(PinnedReuseTest, ABlockStaysAsideUntilTheNamedStreamsWorkIsDone) {
  AllocationPtr source = Submit('A');
  void* const where = source->data();
  facade_->RecordStream(source, stream_);
  source.reset();
  const AllocationPtr next = facade_->Alloc(kPinned, kBytes);
  EXPECT_NE(next->data(), where);
  std::memset(next->data(), 'B', kBytes);
  EXPECT_EQ(Arrived(), 'A');
}

TEST_P(PinnedReuseTest, FreeingOnAStreamNamesItToo) {
  AllocationPtr source = Submit('A');
  Allocator* owner = source->owner();
  owner->Free(std::move(source), stream_);
  std::memset(facade_->Alloc(kPinned, kBytes)->data(), 'B', kBytes);
  EXPECT_EQ(Arrived(), 'A');
}

// The fault that the rule prevents: this caller did not name the stream.
TEST_P(PinnedReuseTest, WithoutTheNameTheCopyReadsWhatCameLater) {
  AllocationPtr source = Submit('A');
  source.reset();
  std::memset(facade_->Alloc(kPinned, kBytes)->data(), 'B', kBytes);
  EXPECT_EQ(Arrived(), 'B');
}

INSTANTIATE_TEST_SUITE_P(Pooled, PinnedReuseTest,
                         testing::Values("auto", "pool", "bfc",
                                         "naive_best_fit", "thread_local"),
                         [](const auto& row) { return row.param; });

TEST_F(FacadeHostTest, ThreadsSharePinnedMemoryThatStreamsUse) {
  Build("strata_pinned_strategy=pool,pool_size_limit=5");
  std::vector<Stream> streams;
  for (int i = 0; i < 4; ++i) streams.push_back(NewStream());
  std::vector<std::thread> threads;
  for (const Stream stream : streams) {
    threads.emplace_back([this, stream] {
      for (std::size_t i = 0; i < 500; ++i) {
        AllocationPtr one = facade().Alloc(kPinned, 256 * (1 + i % 9));
        std::memset(one->data(), 1, one->size());
        facade().RecordStream(one, stream);
        if (i % 100 == 0) facade().Release(kPinned);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(facade().GetStats(kPinned).live_allocations(), 0U);
}

}  // namespace
}  // namespace strata
