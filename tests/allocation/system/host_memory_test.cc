// Pageable host memory: alignment, warnings, locks, NUMA nodes.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "strata/allocation/system/host_allocator.h"
#include "strata/base/size.h"
#include "strata/tests/testing/devices/fake_host.h"

namespace strata {
namespace {

using ::testing::HasSubstr;

std::uintptr_t HostAddressOf(const AllocationPtr& allocation) {
  return reinterpret_cast<std::uintptr_t>(allocation->data());
}

// Number of occurrences of `part` in `text`.
std::size_t CountOf(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos;
       at = text.find(part, at + 1)) {
    ++count;
  }
  return count;
}

// The log output of `body`.
template <class Body>
std::string LogOf(Body body) {
  ::testing::internal::CaptureStderr();
  body();
  return ::testing::internal::GetCapturedStderr();
}

// tf_bfc.md §2, AlignedMalloc: an alignment below that of a pointer is no
// error. The contract excludes alignments that are no power of two.
TEST(HostAlignmentTest, SmallAlignmentsGetACacheLine) {
  HostAllocator host;
  for (const std::size_t alignment : {1U, 2U, 4U, 8U, 16U, 32U, 64U}) {
    const AllocationPtr allocation = host.Allocate(Request{3, alignment});
    EXPECT_EQ(HostAddressOf(allocation) % 64, 0U) << alignment;
    EXPECT_EQ(allocation->size(), 3U);
  }
  EXPECT_THROW(host.Allocate(Request{3, 12}), std::invalid_argument);
}

// tf_bfc.md §2, BasicCPUAllocator: 0 bytes return null.
TEST(HostAlignmentTest, ZeroBytesAreNull) {
  auto fake = std::make_shared<FakeHost>();
  HostAllocator host(fake, HostMemoryOptions());
  NumaAllocator numa(1, fake, HostMemoryOptions());
  EXPECT_EQ(host.Allocate(0)->data(), nullptr);
  EXPECT_EQ(numa.Allocate(0)->data(), nullptr);
  EXPECT_TRUE(fake->preferred().empty());
}

class HostWarningTest : public ::testing::Test {
 protected:
  HostWarningTest() {
    host_->memory_bytes = Mebibytes(100);
    options_.warn_large_fraction = 0.1;
    options_.warn_total_fraction = 0.5;
  }

  std::shared_ptr<FakeHost> host_ = std::make_shared<FakeHost>();
  HostMemoryOptions options_;
};

// tf_bfc.md §2, CPUAllocator: a single block above 10 % of RAM, five times.
TEST_F(HostWarningTest, WarnsOfFiveLargePieces) {
  HostAllocator allocator(host_, options_);
  EXPECT_EQ(LogOf([&] { allocator.Allocate(Mebibytes(10)).reset(); }), "");
  const std::string log = LogOf([&] {
    for (int i = 0; i < 8; ++i) allocator.Allocate(Mebibytes(10) + 1).reset();
  });
  // In bytes, because both values are equal in MiB.
  EXPECT_EQ(CountOf(log, "an allocation of 10485761 B is more than 10485760 B"),
            5U)
      << log;
  EXPECT_THAT(log, HasSubstr("100.0 MiB"));
}

TEST_F(HostWarningTest, SaysSizesInUnitsWhereTheyDiffer) {
  HostAllocator allocator(host_, options_);
  EXPECT_THAT(LogOf([&] { allocator.Allocate(Mebibytes(12)).reset(); }),
              HasSubstr("an allocation of 12.0 MiB is more than 10.0 MiB"));
}

// Likewise: the total above 50 %, once.
TEST_F(HostWarningTest, WarnsOnceOfTheTotal) {
  HostAllocator allocator(host_, options_);
  std::vector<AllocationPtr> live;
  EXPECT_EQ(LogOf([&] {
              for (int i = 0; i < 5; ++i) {
                live.push_back(allocator.Allocate(Mebibytes(10)));
              }
            }),
            "");
  const std::string log = LogOf([&] {
    for (int i = 0; i < 5; ++i) live.push_back(allocator.Allocate(4096));
  });
  EXPECT_EQ(CountOf(log, "52432896 B in use are more than 52428800 B"), 1U)
      << log;
}

TEST_F(HostWarningTest, WhatWasFreedIsNotInTheTotal) {
  HostAllocator allocator(host_, options_);
  EXPECT_EQ(LogOf([&] {
              for (int i = 0; i < 20; ++i) {
                allocator.Allocate(Mebibytes(10)).reset();
              }
            }),
            "");
}

TEST_F(HostWarningTest, AFractionOfZeroTurnsAWarningOff) {
  options_.warn_large_fraction = 0;
  HostAllocator no_large(host_, options_);
  EXPECT_EQ(CountOf(LogOf([&] { no_large.Allocate(Mebibytes(60)).reset(); }),
                    "an allocation of"),
            0U);
  options_.warn_total_fraction = 0;
  HostAllocator silent(host_, options_);
  EXPECT_EQ(LogOf([&] { silent.Allocate(Mebibytes(60)).reset(); }), "");
}

TEST_F(HostWarningTest, AnUnknownSizeOfTheHostWarnsOfNothing) {
  host_->memory_bytes = 0;
  HostAllocator allocator(host_, options_);
  EXPECT_EQ(LogOf([&] { allocator.Allocate(Mebibytes(60)).reset(); }), "");
}

TEST_F(HostWarningTest, NumaMemoryIsWarnedOfToo) {
  NumaAllocator allocator(1, host_, options_);
  EXPECT_THAT(LogOf([&] { allocator.Allocate(Mebibytes(20)).reset(); }),
              HasSubstr("host:1: an allocation of 20.0 MiB"));
}

class HostLockTest : public ::testing::Test {
 protected:
  HostLockTest() { options_.lock = true; }

  std::shared_ptr<FakeHost> host_ = std::make_shared<FakeHost>();
  HostMemoryOptions options_;
};

// paddle.md §2, use_pinned_memory. Locks do not nest, so a locked page must not
// hold other data.
TEST_F(HostLockTest, LocksWholePagesThatHoldNothingElse) {
  HostAllocator allocator(host_, options_);
  AllocationPtr allocation = allocator.Allocate(100'000);
  ASSERT_EQ(host_->locked().size(), 1U);
  const FakeHost::Range locked = host_->locked().front();
  EXPECT_EQ(locked.data, allocation->data());
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(locked.data) % HostPageBytes(),
            0U);
  EXPECT_EQ(locked.bytes, AlignUp(100'000, HostPageBytes()));
  // All of it is writable.
  std::memset(locked.data, 1, locked.bytes);
  allocation.reset();
  ASSERT_EQ(host_->unlocked().size(), 1U);
  EXPECT_EQ(host_->unlocked().front().data, locked.data);
  EXPECT_EQ(host_->unlocked().front().bytes, locked.bytes);
}

TEST_F(HostLockTest, LeavesSmallPiecesUnlocked) {
  HostAllocator allocator(host_, options_);
  allocator.Allocate(HostMemoryRules::kLeastLockedBytes - 1).reset();
  EXPECT_TRUE(host_->locked().empty());
  EXPECT_TRUE(host_->unlocked().empty());
}

TEST_F(HostLockTest, LocksNothingUnlessAsked) {
  HostAllocator allocator(host_, HostMemoryOptions());
  allocator.Allocate(Mebibytes(1)).reset();
  EXPECT_TRUE(host_->locked().empty());
}

TEST_F(HostLockTest, ARefusedLockIsWarnedOfOnceAndTheMemoryServes) {
  host_->lock_error = ENOMEM;
  HostAllocator allocator(host_, options_);
  const std::string log = LogOf([&] {
    for (int i = 0; i < 3; ++i) {
      const AllocationPtr allocation = allocator.Allocate(Mebibytes(1));
      std::memset(allocation->data(), 1, allocation->size());
    }
  });
  EXPECT_EQ(CountOf(log, "could not be locked"), 1U) << log;
  EXPECT_EQ(host_->locked().size(), 3U);
}

TEST(NumaAllocatorTest, AsksForThePagesOfItsNode) {
  auto host = std::make_shared<FakeHost>();
  NumaAllocator allocator(3, host, HostMemoryOptions());
  EXPECT_EQ(allocator.place(), HostPlace(3));
  const AllocationPtr allocation = allocator.Allocate(10'000);
  EXPECT_EQ(allocation->place(), HostPlace(3));
  EXPECT_EQ(allocation->size(), AlignUp(10'000, HostPageBytes()));
  ASSERT_EQ(host->preferred().size(), 1U);
  const FakeHost::Range range = host->preferred().front();
  EXPECT_EQ(range.data, allocation->data());
  EXPECT_EQ(range.bytes, AlignUp(10'000, HostPageBytes()));
  EXPECT_EQ(range.node, 3);
  std::memset(allocation->data(), 1, allocation->size());
}

// Containers refuse mbind: the memory can be used anyway.
TEST(NumaAllocatorTest, AKernelThatRefusesIsWarnedOfOnce) {
  auto host = std::make_shared<FakeHost>();
  host->prefer_error = EPERM;
  NumaAllocator allocator(1, host, HostMemoryOptions());
  const std::string log = LogOf([&] {
    for (int i = 0; i < 3; ++i) {
      const AllocationPtr allocation = allocator.Allocate(5000);
      std::memset(allocation->data(), 1, allocation->size());
    }
  });
  EXPECT_EQ(CountOf(log, "host:1: the kernel does not take memory"), 1U) << log;
}

TEST(NumaAllocatorTest, AlignsAsAsked) {
  NumaAllocator allocator(0, std::make_shared<FakeHost>(), HostMemoryOptions());
  for (std::size_t alignment = 1; alignment <= kMaxAlignment; alignment *= 4) {
    const AllocationPtr allocation =
        allocator.Allocate(Request{5000, alignment});
    const std::size_t least = std::max(alignment, HostPageBytes());
    EXPECT_EQ(HostAddressOf(allocation) % least, 0U) << alignment;
    std::memset(allocation->data(), 1, allocation->size());
  }
}

TEST(NumaAllocatorTest, LackOfMemoryIsAFailure) {
  NumaAllocator allocator(0, std::make_shared<FakeHost>(), HostMemoryOptions());
  for (const std::size_t bytes : {std::size_t{1} << 50, SIZE_MAX}) {
    Failure failure;
    EXPECT_EQ(allocator.AllocateOrNull(Request{bytes}, failure), nullptr);
    EXPECT_EQ(failure.reason, Failure::Reason::kHostMemory);
  }
}

TEST(NumaAllocatorTest, LocksItsPagesIfAsked) {
  auto host = std::make_shared<FakeHost>();
  HostMemoryOptions options;
  options.lock = true;
  NumaAllocator allocator(0, host, options);
  allocator.Allocate(Mebibytes(1)).reset();
  EXPECT_EQ(host->locked().size(), 1U);
}

TEST(NumaAllocatorTest, NeedsAHost) {
  EXPECT_THROW(NumaAllocator(0, nullptr, HostMemoryOptions()),
               std::invalid_argument);
}

}  // namespace
}  // namespace strata
