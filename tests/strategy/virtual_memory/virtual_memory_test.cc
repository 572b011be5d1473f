// The strategy virtual_memory: growth by pages, free handles that move, and
// address ranges.

#include <glog/logging.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "strata/strategy/virtual_memory/vmm_policy.h"
#include "strata/tests/strategy/virtual_memory/vmm_fixture.h"

namespace strata {
namespace {

class VirtualMemoryTest : public VmmFixture {
 protected:
  // Fills the device with blocks of `bytes`, then frees every other block.
  std::vector<AllocationPtr> LeaveHalf(std::size_t bytes) {
    std::vector<AllocationPtr> blocks;
    while (AllocationPtr block = TryAllocate(a_, bytes)) {
      blocks.push_back(std::move(block));
    }
    for (std::size_t i = 0; i < blocks.size(); i += 2) blocks[i].reset();
    return blocks;
  }
};

TEST_F(VirtualMemoryTest, GrowthMapsOnlyThePagesThatAreMissing) {
  Build();
  const AllocationPtr first = a_->Allocate(7 * kMiB);
  EXPECT_EQ(reserved(), 8 * kMiB);
  // 1 MiB of the last page is free.
  const AllocationPtr second = a_->Allocate(3 * kMiB);
  EXPECT_EQ(reserved(), 10 * kMiB);
  const AllocationPtr third = a_->Allocate(2 * kMiB);
  EXPECT_EQ(reserved(), 12 * kMiB);
  EXPECT_EQ(Calls(DeviceCall::kMemAlloc), 0U);
}

TEST_F(VirtualMemoryTest, OneCallSetsTheAccessOfARun) {
  Build();
  const AllocationPtr block = a_->Allocate(20 * kMiB);
  EXPECT_EQ(Calls(DeviceCall::kCreateMemory), 10U);
  EXPECT_EQ(Calls(DeviceCall::kMapRange), 10U);
  EXPECT_EQ(Calls(DeviceCall::kSetAccess), 1U);
}

TEST_F(VirtualMemoryTest, SmallBlocksHaveARangeOfTheirOwn) {
  Build();
  const AllocationPtr small = a_->Allocate(kMiB / 4);
  const AllocationPtr large = a_->Allocate(kMiB / 4 + 256);
  EXPECT_NE(small->base(), large->base());
}

TEST_F(VirtualMemoryTest, AHitCallsNoDriver) {
  Build();
  AllocationPtr block = a_->Allocate(8 * kMiB);
  const std::uint64_t calls = place_->DeviceCalls();
  for (int i = 0; i < 100; ++i) {
    block.reset();
    block = a_->Allocate(8 * kMiB);
  }
  EXPECT_EQ(place_->DeviceCalls(), calls);
}

// A strategy of chunks would have no hole of 24 MiB here.
TEST_F(VirtualMemoryTest, FreeHandlesMoveToWhereTheyAreNeeded) {
  Build();
  const std::vector<AllocationPtr> kept = LeaveHalf(8 * kMiB);
  EXPECT_EQ(reserved(), 64 * kMiB);
  const std::uint64_t created = Calls(DeviceCall::kCreateMemory);
  const AllocationPtr large = a_->Allocate(32 * kMiB);
  EXPECT_EQ(Calls(DeviceCall::kCreateMemory), created);
  EXPECT_EQ(reserved(), 64 * kMiB);
  EXPECT_EQ(TryAllocate(a_, 2 * kMiB), nullptr);
}

// A search looks at the first eight blocks of a class only.
TEST_F(VirtualMemoryTest, AGrowthFindsTheNinthBlockOfAClass) {
  options_.memory_bytes = 1024 * kMiB;
  options_.strategy_options.Edit<VirtualMemoryOptions>().vmm_remap = "tight";
  Build();
  AllocationPtr moved = a_->Allocate(8 * kMiB);
  AllocationPtr fitting = a_->Allocate(8 * kMiB + kMiB / 64);
  std::vector<AllocationPtr> kept;
  std::vector<AllocationPtr> others;
  for (int i = 0; i < 8; ++i) {
    kept.push_back(a_->Allocate(kMiB));
    others.push_back(a_->Allocate(8 * kMiB));
  }
  kept.push_back(a_->Allocate(kMiB));
  // The first block becomes a hole.
  moved.reset();
  kept.push_back(a_->Allocate(16 * kMiB));
  kept.push_back(a_->Allocate(16 * kMiB));
  const void* const at = fitting->data();
  fitting.reset();
  for (AllocationPtr& other : others) other.reset();
  const std::uint64_t created = Calls(DeviceCall::kCreateMemory);
  const AllocationPtr block = a_->Allocate(8 * kMiB + kMiB / 128);
  EXPECT_EQ(block->data(), at);
  EXPECT_EQ(Calls(DeviceCall::kCreateMemory), created);
}

TEST_F(VirtualMemoryTest, MovedMemoryKeepsNoOldBytesOfLiveBlocks) {
  // Pages at the ends of these blocks belong to two blocks.
  options_.data = "backed";
  Build();
  const std::vector<AllocationPtr> kept = LeaveHalf(7 * kMiB);
  for (const AllocationPtr& block : kept) {
    if (block == nullptr) continue;
    ASSERT_EQ(device().MemsetAsync(reinterpret_cast<DevicePtr>(block->data()),
                                   0x5a, block->size(), a_.stream()),
              Status::kSuccess);
  }
  const AllocationPtr large = a_->Allocate(32 * kMiB);
  ASSERT_EQ(device().MemsetAsync(reinterpret_cast<DevicePtr>(large->data()),
                                 0x11, large->size(), a_.stream()),
            Status::kSuccess);
  std::vector<unsigned char> bytes(7 * kMiB);
  for (const AllocationPtr& block : kept) {
    if (block == nullptr) continue;
    ASSERT_EQ(device().MemcpyAsync(reinterpret_cast<DevicePtr>(bytes.data()),
                                   reinterpret_cast<DevicePtr>(block->data()),
                                   bytes.size(), a_.stream()),
              Status::kSuccess);
    EXPECT_EQ(bytes, std::vector<unsigned char>(bytes.size(), 0x5a));
  }
}

TEST_F(VirtualMemoryTest, OldAddressesStayMappedUntilTheirWorkIsDone) {
  options_.progress = "manual";
  Build();
  std::vector<AllocationPtr> kept = LeaveHalf(8 * kMiB);
  Submit(a_);
  AllocationPtr large = a_->Allocate(32 * kMiB);
  EXPECT_EQ(Calls(DeviceCall::kUnmapRange), 0U);
  EXPECT_GT(device().Leaks().mapped_bytes, 64 * kMiB);
  // Another growth while the work is pending.
  large.reset();
  kept[1].reset();
  large = a_->Allocate(40 * kMiB);
  EXPECT_EQ(Calls(DeviceCall::kUnmapRange), 0U);
  device().StepAll();
  // The next growth unmaps them.
  large.reset();
  kept.clear();
  const AllocationPtr all = a_->Allocate(64 * kMiB);
  EXPECT_GT(Calls(DeviceCall::kUnmapRange), 0U);
}

TEST_F(VirtualMemoryTest, AHandleIsNotReleasedWhileItsOldAddressesAreUnmapped) {
  Build();
  std::vector<AllocationPtr> kept = LeaveHalf(8 * kMiB);
  AllocationPtr large = a_->Allocate(32 * kMiB);
  // Another thread releases all that it can before the first unmap. The visitor
  // outlives this function.
  const auto reserved_then = std::make_shared<std::optional<std::size_t>>();
  pool().AddVisitor([this, reserved_then](void*, std::size_t, int change) {
    if (change > 0 || *reserved_then) return;
    *reserved_then = 0;
    std::thread([this] { a_->Release(); }).join();
    *reserved_then = reserved();
  });
  // 32 MiB that moved, and 8 MiB that did not.
  large.reset();
  kept[1].reset();
  large = a_->Allocate(40 * kMiB);
  EXPECT_EQ(*reserved_then, 56 * kMiB);
}

class LendingTest : public VirtualMemoryTest {
 protected:
  void TearDown() override {
    kept_.clear();
    loan_.reset();
    VirtualMemoryTest::TearDown();
  }
  // Lets a_ settle, lend, and create memory meanwhile.
  void StopLending() {
    options_.memory_bytes = 1024 * kMiB;
    Build();
    b_ = place_->AddChain();
    kept_ = VmmFixture::LeaveHalf(a_, 8 * kMiB, 8);
    // Moves half of the memory without a new peak.
    kept_.push_back(a_->Allocate(32 * kMiB));
    kept_[1].reset();
    const std::size_t before = reserved();
    loan_ = b_->Allocate(4 * kMiB);
    EXPECT_EQ(reserved(), before);
    kept_[3].reset();
    kept_[5].reset();
    kept_.push_back(a_->Allocate(20 * kMiB));
    EXPECT_GT(reserved(), before + before / 12);
    // From here on, a_ has free blocks of 8 MiB.
    kept_[7].reset();
  }
  // Fills a_ with blocks of 1 MiB, so that none of its handles is free, and
  // frees one of them.
  void LeaveOneMebibyte() {
    const Request request{.bytes = kMiB, .flags = kNoGrowth};
    Failure failure;
    while (AllocationPtr block = a_->AllocateOrNull(request, failure)) {
      kept_.push_back(std::move(block));
    }
    kept_.pop_back();
  }

  std::vector<AllocationPtr> kept_;
  AllocationPtr loan_;
};

TEST_F(LendingTest, ASettledStreamStopsWhenLoansMakeItCreate) {
  StopLending();
  const std::size_t before = reserved();
  const AllocationPtr own = b_->Allocate(8 * kMiB);
  EXPECT_GT(reserved(), before);
}

TEST_F(LendingTest, ASettledStreamServesARequestThatWouldFail) {
  StopLending();
  LeaveOneMebibyte();
  const AllocationPtr rest = b_->Allocate(1024 * kMiB - reserved());
  ASSERT_EQ(reserved(), 1024 * kMiB);
  EXPECT_NE(TryAllocate(b_, kMiB), nullptr);
}

TEST_F(LendingTest, AReleaseLetsASettledStreamLendAgain) {
  StopLending();
  const std::size_t before = reserved();
  a_->Release();
  EXPECT_LT(reserved(), before);
  LeaveOneMebibyte();
  const std::size_t released = reserved();
  const AllocationPtr loan = b_->Allocate(kMiB);
  EXPECT_EQ(reserved(), released);
}

TEST_F(VirtualMemoryTest, AddressesThatAReleaseDoesNotUnmapStayRetired) {
  Build();
  std::vector<AllocationPtr> kept = LeaveHalf(8 * kMiB);
  // A growth fails, and the driver refuses to unmap its addresses.
  device().AddFault(FailNth(DeviceCall::kSetAccess, 1));
  device().AddFault(FailNth(DeviceCall::kUnmapRange, 1));
  EXPECT_EQ(TryAllocate(a_, 32 * kMiB), nullptr);
  EXPECT_GT(device().Leaks().mapped_bytes, 64 * kMiB);
  for (std::size_t i = 0; i < kept.size(); i += 2) {
    kept[i] = a_->Allocate(8 * kMiB);
  }
  // No handle is free.
  a_->Release();
  EXPECT_EQ(device().Leaks().mapped_bytes, 64 * kMiB);
}

TEST_F(VirtualMemoryTest, AReleaseWithoutFreeHandlesUnmapsNothing) {
  options_.progress = "manual";
  Build();
  const std::vector<AllocationPtr> kept = LeaveHalf(8 * kMiB);
  Submit(a_);
  const AllocationPtr large = a_->Allocate(32 * kMiB);
  // Pending work uses the old addresses, and nothing is free.
  EXPECT_EQ(a_->Release(), 0U);
  EXPECT_EQ(Calls(DeviceCall::kUnmapRange), 0U);
}

TEST_F(VirtualMemoryTest, WithoutAliasesNothingIsMappedTwice) {
  options_.strategy_options.Edit<VirtualMemoryOptions>().vmm_alias = false;
  options_.progress = "manual";
  Build();
  const std::vector<AllocationPtr> kept = LeaveHalf(8 * kMiB);
  Submit(a_);
  const AllocationPtr large = a_->Allocate(32 * kMiB);
  EXPECT_EQ(device().Leaks().mapped_bytes, 64 * kMiB);
}

TEST_F(VirtualMemoryTest, WithoutAliasesAMoveWaitsForTheStream) {
  options_.strategy_options.Edit<VirtualMemoryOptions>().vmm_alias = false;
  options_.progress = "manual";
  Build();
  const std::vector<AllocationPtr> kept = LeaveHalf(8 * kMiB);
  Submit(a_);
  const std::uint64_t waits = Calls(DeviceCall::kStreamSynchronize);
  const AllocationPtr large = a_->Allocate(32 * kMiB);
  EXPECT_EQ(Calls(DeviceCall::kStreamSynchronize), waits + 1);
}

TEST_F(VirtualMemoryTest, WithoutAliasesAFailedWaitLeavesCreation) {
  options_.strategy_options.Edit<VirtualMemoryOptions>().vmm_alias = false;
  options_.strategy_options.Edit<VirtualMemoryOptions>().vmm_remap = "tight";
  options_.memory_bytes = 256 * kMiB;
  Build();
  const std::vector<AllocationPtr> kept =
      VmmFixture::LeaveHalf(a_, 8 * kMiB, 12);
  device().AddFault(FailAll(DeviceCall::kStreamSynchronize));
  device().AddFault(FailAll(DeviceCall::kSynchronize));
  EXPECT_NE(TryAllocate(a_, 40 * kMiB), nullptr);
  EXPECT_EQ(device().Leaks().mapped_bytes, reserved());
}

TEST_F(VirtualMemoryTest, WithoutAliasesAFailedWaitIsAShortage) {
  options_.strategy_options.Edit<VirtualMemoryOptions>().vmm_alias = false;
  Build();
  const std::vector<AllocationPtr> kept = LeaveHalf(8 * kMiB);
  device().AddFault(FailAll(DeviceCall::kStreamSynchronize));
  device().AddFault(FailAll(DeviceCall::kSynchronize));
  Failure failure;
  EXPECT_EQ(a_->AllocateOrNull(Request{32 * kMiB}, failure), nullptr);
  EXPECT_EQ(failure.reason, Failure::Reason::kDeviceMemory);
}

// A captured graph uses the old addresses again at each launch.
TEST_F(VirtualMemoryTest, MemoryOfAGraphPoolStaysWhereItIs) {
  Build();
  const auto stream =
      std::make_shared<ChainStream>(device(), place_->NewStream());
  {
    VirtualMemoryAllocator strategy(place_->pool(), stream, StrategyOptions());
    std::vector<AllocationPtr> blocks;
    for (int i = 0; i < 8; ++i) blocks.push_back(strategy.Allocate(8 * kMiB));
    for (std::size_t i = 0; i < blocks.size(); i += 2) blocks[i].reset();
    Failure failure;
    const Request request{.bytes = 32 * kMiB, .flags = kNoRetry};
    EXPECT_EQ(strategy.AllocateOrNull(request, failure), nullptr);
    EXPECT_EQ(Calls(DeviceCall::kUnmapRange), 0U);
    EXPECT_EQ(device().Leaks().mapped_bytes, 64 * kMiB);
  }
}

// A stream that cannot be waited for yet, like the stream of a graph pool while
// a capture is announced.
class UnreadyStream final : public ChainStream {
 public:
  using ChainStream::ChainStream;
  Status Synchronize() noexcept override {
    return is_ready ? ChainStream::Synchronize() : Status::kNotReady;
  }
  bool IsDone() noexcept override { return is_ready; }

  bool is_ready = false;
};

// Counts the errors logged during its lifetime.
class ErrorCounter final : public google::LogSink {
 public:
  ErrorCounter() { google::AddLogSink(this); }
  ErrorCounter(const ErrorCounter&) = delete;
  ErrorCounter& operator=(const ErrorCounter&) = delete;
  ~ErrorCounter() override { google::RemoveLogSink(this); }

  void send(google::LogSeverity severity, const char* /*full_filename*/,
            const char* /*base_filename*/, int /*line*/,
            const struct ::tm* /*time*/, const char* /*message*/,
            std::size_t /*message_len*/) override {
    if (severity == google::GLOG_ERROR) ++count;
  }

  int count = 0;
};

TEST_F(VirtualMemoryTest, AStreamThatCannotBeWaitedForYetIsNoError) {
  Build();
  const auto stream =
      std::make_shared<UnreadyStream>(device(), place_->NewStream());
  std::shared_ptr<Allocator> strategy =
      AutoGrowthAllocator::MakeLender(std::make_unique<VirtualMemoryAllocator>(
          place_->pool(), stream, StrategyOptions()));
  strategy->Allocate(8 * kMiB).reset();
  const ErrorCounter errors;
  strategy.reset();
  EXPECT_EQ(errors.count, 0);
  EXPECT_EQ(reserved(), 8 * kMiB);
  stream->is_ready = true;
  pool().Release();
  EXPECT_EQ(reserved(), 0U);
}

TEST_F(VirtualMemoryTest, TheLimitHoldsExactly) {
  options_.memory_bytes = 256 * kMiB;
  options_.limit_bytes = 50 * kMiB;
  Build();
  std::vector<AllocationPtr> blocks;
  while (AllocationPtr block = TryAllocate(a_, 3 * kMiB)) {
    blocks.push_back(std::move(block));
    EXPECT_LE(reserved(), 50 * kMiB);
  }
  EXPECT_EQ(blocks.size(), 16U);
  Failure failure;
  EXPECT_EQ(a_->AllocateOrNull(Request{3 * kMiB}, failure), nullptr);
  EXPECT_EQ(failure.reason, Failure::Reason::kLimit);
}

TEST_F(VirtualMemoryTest, AFullDeviceIsNamed) {
  Build();
  Failure failure;
  EXPECT_EQ(a_->AllocateOrNull(Request{65 * kMiB}, failure), nullptr);
  EXPECT_EQ(failure.reason, Failure::Reason::kDeviceMemory);
  EXPECT_EQ(failure.requested_bytes, 65 * kMiB);
  EXPECT_EQ(failure.device_total_bytes, 64 * kMiB);
  EXPECT_EQ(reserved(), 0U);
}

TEST_F(VirtualMemoryTest, IdleMemoryOfAnotherStreamServesAtTheLimit) {
  Build();
  b_ = place_->AddChain();
  // Blocks of 8 MiB. A loan of 40 MiB finds no single piece.
  std::vector<AllocationPtr> blocks;
  for (int i = 0; i < 7; ++i) blocks.push_back(b_->Allocate(8 * kMiB));
  for (std::size_t i = 0; i < blocks.size(); i += 2) blocks[i].reset();
  const AllocationPtr large = a_->Allocate(32 * kMiB);
  EXPECT_NE(large, nullptr);
  EXPECT_LE(reserved(), 64 * kMiB);
}

TEST_F(VirtualMemoryTest, AnotherStreamsFreeBlockIsLent) {
  Build();
  b_ = place_->AddChain();
  AllocationPtr block = b_->Allocate(16 * kMiB);
  block.reset();
  const std::uint64_t created = Calls(DeviceCall::kCreateMemory);
  const AllocationPtr loan = a_->Allocate(12 * kMiB);
  EXPECT_EQ(Calls(DeviceCall::kCreateMemory), created);
  EXPECT_EQ(reserved(), 16 * kMiB);
}

TEST_F(VirtualMemoryTest, ReleaseGivesBackEveryFreeHandle) {
  Build();
  AllocationPtr kept = a_->Allocate(3 * kMiB);
  AllocationPtr block = a_->Allocate(20 * kMiB);
  block.reset();
  EXPECT_EQ(a_->Release(), 20 * kMiB);
  EXPECT_EQ(reserved(), 4 * kMiB);
  kept.reset();
  a_->Release();
  EXPECT_EQ(reserved(), 0U);
}

TEST_F(VirtualMemoryTest, BeyondTheAddressesChunksServe) {
  options_.strategy_options.Edit<VirtualMemoryOptions>().vmm_reserve_bytes =
      12 * kMiB;
  Build();
  const AllocationPtr mapped = a_->Allocate(4 * kMiB);
  EXPECT_EQ(Calls(DeviceCall::kMemAlloc), 0U);
  const AllocationPtr chunk = a_->Allocate(20 * kMiB);
  EXPECT_EQ(Calls(DeviceCall::kMemAlloc), 1U);
  EXPECT_EQ(device().Leaks().reservation_bytes, 8 * kMiB);
}

TEST_F(VirtualMemoryTest, ManyStreamsInTurnReturnTheirAddresses) {
  Build();
  for (int i = 0; i < 100; ++i) {
    TestChain chain = place_->AddChain();
    chain->Allocate(4 * kMiB).reset();
    chain = TestChain();
    EXPECT_LE(device().Leaks().reservations, 1U);
  }
}

TEST_F(VirtualMemoryTest, LongLivedBlocksShareTheRange) {
  Build();
  std::vector<AllocationPtr> blocks;
  for (int i = 0; i < 12; ++i) {
    blocks.push_back(a_->Allocate(Request{.bytes = kMiB, .flags = kLongLived}));
  }
  EXPECT_EQ(reserved(), 12 * kMiB);
}

TEST_F(VirtualMemoryTest, HostMemoryIsServedByChunks) {
  options_.kind = PlaceKind::kHost;
  Build();
  const AllocationPtr block = a_->Allocate(8 * kMiB);
  EXPECT_EQ(Calls(DeviceCall::kReserveRange), 0U);
}

TEST_F(VirtualMemoryTest, ManagedMemoryIsServedByChunks) {
  options_.strategy_options.is_managed = true;
  Build();
  const AllocationPtr block = a_->Allocate(8 * kMiB);
  EXPECT_EQ(Calls(DeviceCall::kReserveRange), 0U);
  EXPECT_EQ(Calls(DeviceCall::kMemAlloc), 1U);
}

}  // namespace
}  // namespace strata
