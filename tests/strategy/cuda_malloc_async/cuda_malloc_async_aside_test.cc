// The free streams of cuda_malloc_async: a slow stream delays only the memory
// that it used.

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <utility>

#include "strata/tests/strategy/cuda_malloc_async/cuda_malloc_async_fixture.h"

namespace strata {
namespace {

// Work takes time on the clock of the platform. The driver grows by 32 MiB, the
// size of four blocks.
class CudaMallocAsyncAsideTest : public CudaMallocAsyncFixture {
 protected:
  static constexpr std::size_t kBytes = Mebibytes(8);
  static constexpr std::uint64_t kShortNs = 100'000;
  static constexpr std::uint64_t kLongNs = 10'000'000'000;

  ~CudaMallocAsyncAsideTest() override { chain_ = Chain(); }

  void Start() {
    setting_.progress = "timed";
    Build();
    chain_ = NewChain();
  }
  void Work(const Stream& stream, std::uint64_t ns) {
    EXPECT_EQ(platform_->work(0)->Enqueue(stream, nullptr, 0, ns, 0),
              Status::kSuccess);
  }
  // Frees a block of `chain` that work of `user` uses.
  void Use(const Chain& chain, const Stream& user, std::uint64_t ns) {
    AllocationPtr block = chain->Allocate(kBytes);
    Work(user, ns);
    FreeMarked(std::move(block), user);
  }
  void Use(const Stream& user, std::uint64_t ns) { Use(chain_, user, ns); }
  bool IsDone(const Stream& stream) {
    return device().StreamQuery(stream) == Status::kSuccess;
  }

  Chain chain_;
};

// The fault (pytorch#71616): one free stream waited for each mark in turn.
TEST_F(CudaMallocAsyncAsideTest, ASlowMarkDelaysNoOtherMemory) {
  Start();
  const Stream slow = NewStream();
  const Stream fast = NewStream();
  Use(slow, kLongNs);
  for (int i = 0; i < 20; ++i) {
    Use(fast, kShortNs);
    EXPECT_EQ(device().StreamSynchronize(fast), Status::kSuccess);
  }
  EXPECT_EQ(pool_->reserved_bytes(), 4 * kBytes);
  EXPECT_FALSE(IsDone(slow)) << "nobody waited for it";
}

TEST_F(CudaMallocAsyncAsideTest, ASlowOwnerDelaysNoOtherMemory) {
  Start();
  const Chain slow = NewChain();
  const Stream user = NewStream();
  Work(slow.stream(), kLongNs);
  Use(slow, user, kShortNs);
  for (int i = 0; i < 20; ++i) {
    Use(user, kShortNs);
    EXPECT_EQ(device().StreamSynchronize(user), Status::kSuccess);
  }
  EXPECT_EQ(pool_->reserved_bytes(), 4 * kBytes);
  EXPECT_FALSE(IsDone(slow.stream()));
}

TEST_F(CudaMallocAsyncAsideTest, ASlowStreamThatIsGoneDelaysNoOtherMemory) {
  Start();
  const Stream slow = NewStream();
  const Stream fast = NewStream();
  AllocationPtr first = chain_->Allocate(2 * kBytes);
  AllocationPtr second = chain_->Allocate(2 * kBytes);
  chain_->RecordStream(first.get(), slow);
  chain_->RecordStream(second.get(), fast);
  Work(slow, kLongNs);
  Work(fast, kShortNs);
  for (const Stream& stream : {slow, fast}) {
    chain_->StreamDestroyed(stream);
    Destroy(stream);
  }
  void* const address = second->data();
  first.reset();
  second.reset();
  // Until the fast one completes.
  Work(chain_.stream(), 2 * kShortNs);
  EXPECT_EQ(device().StreamSynchronize(chain_.stream()), Status::kSuccess);
  const AllocationPtr next = chain_->Allocate(2 * kBytes);
  EXPECT_EQ(next->data(), address);
  EXPECT_EQ(pool_->reserved_bytes(), 4 * kBytes);
}

TEST_F(CudaMallocAsyncAsideTest, HasABoundedNumberOfFreeStreams) {
  Start();
  const std::uint64_t before = Count(DeviceCall::kStreamCreate);
  constexpr std::size_t kUsers = 3 * SideStreams::kMost;
  for (std::size_t i = 0; i < kUsers; ++i) {
    Use(NewStream(), kShortNs);
    EXPECT_EQ(device().Synchronize(), Status::kSuccess);
  }
  EXPECT_EQ(Count(DeviceCall::kStreamCreate) - before,
            kUsers + SideStreams::kMost);
  EXPECT_EQ(pool_->reserved_bytes(), Mebibytes(32));
}

// For any set of free streams.
TEST_F(CudaMallocAsyncAsideTest, AThrottledStreamWaitsForAllOfThem) {
  options_.Edit<CudaMallocAsyncOptions>()
      .cuda_malloc_async_pool_memory_throttle_ratio = 0.1;
  Start();
  const Chain throttled = NewChain();
  const Stream first = NewStream();
  const Stream second = NewStream();
  AllocationPtr slow = chain_->Allocate(kBytes);
  AllocationPtr slower = chain_->Allocate(kBytes);
  Work(first, kLongNs);
  Work(second, 2 * kLongNs);
  FreeMarked(std::move(slower), second);
  FreeMarked(std::move(slow), first);
  const AllocationPtr block = throttled->Allocate(1000);
  EXPECT_EQ(device().StreamSynchronize(throttled.stream()), Status::kSuccess);
  EXPECT_TRUE(IsDone(first));
  EXPECT_TRUE(IsDone(second));
}

}  // namespace
}  // namespace strata
