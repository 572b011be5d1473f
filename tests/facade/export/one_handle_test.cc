// Requests for a whole handle and for legacy memory, the address range of an
// allocation, and visitors of mappings.

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <utility>
#include <vector>

#include "strata/allocation/error.h"
#include "strata/tests/facade/export/export_fixture.h"

namespace strata {
namespace {

TEST_F(ExportTest, OneHandleHoldsOneAllocation) {
  Build(kMapped);
  const AllocationPtr before = Alloc(kPage / 2);
  AllocationPtr block = Alloc(3 * kPage - 1000, kOneHandle);
  const AllocationPtr after = Alloc(kPage / 2);
  const AddressSpan span = facade().GetAddressRange(*block);
  EXPECT_EQ(span.begin, block->data());
  EXPECT_EQ(span.bytes, 3 * kPage);
  EXPECT_EQ(block->size(), 3 * kPage);
  EXPECT_EQ(At(block->data()) % kPage, 0U);
  const ExportedMemory exported = facade().Export(*block);
  ASSERT_EQ(exported.pieces().size(), 1U);
  EXPECT_EQ(exported.pieces()[0].offset, 0U);
  EXPECT_EQ(exported.pieces()[0].bytes, exported.pieces()[0].handle_bytes);
  for (const AllocationPtr* other : {&before, &after}) {
    EXPECT_NE(facade().GetAddressRange(**other).begin, span.begin);
  }
}

TEST_F(ExportTest, HandleIsAlignedToItsPage) {
  Build(kMapped);
  Request request{kPage + kPage / 2, kPage};
  request.flags = kOneHandle;
  const AllocationPtr block = facade().Alloc(kPlace, request);
  const AddressSpan span = facade().GetAddressRange(*block);
  EXPECT_EQ(span.begin, block->data());
  EXPECT_EQ(span.bytes, 2 * kPage);
  EXPECT_EQ(At(block->data()) % kPage, 0U);
  request.alignment = 2 * kPage;
  EXPECT_THROW(facade().Alloc(kPlace, request), std::invalid_argument);
}

TEST_F(ExportTest, FreeHandleOfTheSizeServesAgain) {
  Build(kMapped);
  AllocationPtr block = Alloc(3 * kPage, kOneHandle);
  const void* const data = block->data();
  block.reset();
  const std::uint64_t calls = CountAll();
  block = Alloc(3 * kPage - 5, kOneHandle);
  EXPECT_EQ(block->data(), data);
  EXPECT_EQ(CountAll(), calls);
  block.reset();
  // It serves other requests too.
  block = Alloc(2 * kPage);
  EXPECT_EQ(CountAll(), calls);
}

TEST_F(ExportTest, LargerFreeHandleServesNoOneHandle) {
  Build(kMapped);
  Alloc(3 * kPage, kOneHandle).reset();
  const AllocationPtr block = Alloc(2 * kPage, kOneHandle);
  EXPECT_EQ(facade().GetAddressRange(*block).begin, block->data());
  EXPECT_EQ(facade().GetAddressRange(*block).bytes, 2 * kPage);
}

TEST_F(ExportTest, ExportedHandleServesNoOneElseAlone) {
  Build(kMapped);
  AllocationPtr block = Alloc(kPage, kOneHandle);
  const void* const data = block->data();
  const ExportedMemory exported = facade().Export(*block);
  block.reset();
  block = Alloc(kPage, kOneHandle);
  EXPECT_NE(block->data(), data);
}

TEST_F(ExportTest, OneHandleObeysLimitAndDevice) {
  Build(std::string(kMapped) + ",gpu_memory_limit_mb=16");
  AllocationPtr idle = Alloc(4 * kPage);
  idle.reset();
  // It releases the idle handles first.
  const AllocationPtr block = Alloc(6 * kPage, kOneHandle);
  EXPECT_LE(Reserved(), 8 * kPage);
  EXPECT_THROW(Alloc(4 * kPage, kOneHandle), OutOfMemory);
  EXPECT_LE(Reserved(), 8 * kPage);
}

TEST_F(ExportTest, FailedHandleChangesNothing) {
  Build(kMapped);
  const AllocationPtr kept = Alloc(kPage);
  facade().Release(kPlace);
  const std::size_t reserved = Reserved();
  const auto leaks = device().Leaks();
  for (const DeviceCall call :
       {DeviceCall::kCreateMemory, DeviceCall::kMapRange,
        DeviceCall::kSetAccess}) {
    Fault(call, 1);
    EXPECT_THROW(Alloc(2 * kPage, kOneHandle), DeviceError);
    device().ClearFaults();
    EXPECT_EQ(Reserved(), reserved);
    EXPECT_EQ(device().Leaks(), leaks);
  }
}

TEST_F(ExportTest, StrategyWithoutHandlesRefusesOneHandle) {
  for (const char* const strategy : {"auto_growth", "bfc", "naive_best_fit",
                                     "direct", "pool", "cuda_malloc_async"}) {
    Build(std::string("allocator_strategy=") + strategy);
    EXPECT_THROW(Alloc(kPage, kOneHandle), std::invalid_argument) << strategy;
  }
}

TEST_F(ExportTest, RangeOfAnAllocationIsMapped) {
  Build(kMapped);
  const AllocationPtr before = Alloc(kPage / 2);
  const AllocationPtr block = Alloc(2 * kPage);
  const AddressSpan span = facade().GetAddressRange(*block);
  EXPECT_LE(span.begin, block->data());
  EXPECT_GE(span.begin + span.bytes,
            static_cast<std::byte*>(block->data()) + block->size());
  Access access = Access::kNone;
  for (std::size_t offset = 0; offset < span.bytes; offset += kPage) {
    EXPECT_EQ(device().GetAccess(At(span.begin + offset), {}, &access),
              Status::kSuccess);
  }
}

TEST_F(ExportTest, RangeInAChunkIsTheChunk) {
  Build("allocator_strategy=auto_growth");
  const AllocationPtr block = Alloc(kPage / 4);
  const AddressSpan span = facade().GetAddressRange(*block);
  EXPECT_EQ(span.begin, facade().GetBasePtr(*block));
  EXPECT_EQ(span.bytes, Reserved());
}

TEST_F(ExportTest, LegacyMemoryIsAChunkOfTheSameBudget) {
  Build(std::string(kMapped) + ",gpu_memory_limit_mb=12");
  AllocationPtr mapped = Alloc(3 * kPage);
  AllocationPtr block = Alloc(2 * kPage, kLegacyIpc);
  EXPECT_EQ(Count(DeviceCall::kMemAlloc), 1U);
  const AddressSpan chunk = facade().GetAddressRange(*block);
  EXPECT_EQ(Reserved(), 3 * kPage + chunk.bytes);
  EXPECT_EQ(chunk.begin, facade().GetBasePtr(*block));
  EXPECT_THROW(facade().Export(*block), std::invalid_argument);
  EXPECT_THROW(Alloc(4 * kPage, kLegacyIpc), OutOfMemory);
  // Free mapped memory makes room.
  mapped.reset();
  const AllocationPtr other = Alloc(4 * kPage, kLegacyIpc);
  EXPECT_EQ(Reserved(), 6 * kPage);
}

TEST_F(ExportTest, FreeChunksServeLegacyRequests) {
  Build(kMapped);
  Alloc(4 * kPage).reset();
  AllocationPtr block = Alloc(2 * kPage, kLegacyIpc);
  EXPECT_EQ(Count(DeviceCall::kMemAlloc), 1U);
  const void* const base = facade().GetBasePtr(*block);
  block.reset();
  block = Alloc(2 * kPage, kLegacyIpc);
  EXPECT_EQ(facade().GetBasePtr(*block), base);
  EXPECT_EQ(Count(DeviceCall::kMemAlloc), 1U);
}

TEST_F(ExportTest, ChunkWithARestServesItsSizeAgain) {
  Build(kMapped);
  for (int i = 0; i < 10; ++i) Alloc(kPage + kPage / 2, kLegacyIpc).reset();
  EXPECT_EQ(Count(DeviceCall::kMemAlloc), 1U);
}

// An importer sees all of a chunk.
TEST_F(ExportTest, SmallLegacyRequestLeavesALargeChunkWhole) {
  Build(std::string(kMapped) + ",gpu_memory_limit_mb=12");
  Alloc(4 * kPage, kLegacyIpc).reset();
  const AllocationPtr small = Alloc(Kibibytes(64), kLegacyIpc);
  const AllocationPtr large = Alloc(4 * kPage, kLegacyIpc);
  EXPECT_EQ(Reserved(), 5 * kPage);
}

TEST_F(ExportTest, OtherMemoryServesNoLegacyRequests) {
  Build();
  Request request{1000};
  request.flags = kLegacyIpc;
  for (const Place place : {HostPlace(), PinnedPlace(0), ManagedPlace(0)}) {
    EXPECT_THROW(facade().Alloc(place, request), std::invalid_argument);
  }
  Build("use_cuda_managed_memory");
  EXPECT_THROW(facade().Alloc(kPlace, request), std::invalid_argument);
}

TEST_F(ExportTest, FailedLegacyRequestChangesNothing) {
  Build(kMapped);
  Fault(DeviceCall::kMemAlloc, 1);
  EXPECT_THROW(Alloc(kPage, kLegacyIpc), DeviceError);
  EXPECT_EQ(Reserved(), 0U);
  EXPECT_THROW(Alloc(kPage, kLegacyIpc | kOneHandle), std::invalid_argument);
}

TEST_F(ExportTest, DriverPoolsRefuseLegacyRequests) {
  Build("allocator_strategy=cuda_malloc_async");
  EXPECT_THROW(Alloc(kPage, kLegacyIpc), std::invalid_argument);
}

TEST_F(ExportTest, VisitorsHearOfMappingsBeforeTheyGo) {
  Build(kMapped);
  struct Visit {
    void* data;
    std::size_t bytes;
    int change;
  };
  std::vector<Visit> visits;
  bool is_inside = false;
  facade().AddVisitor(
      kPlace, [&](Place, void* data, std::size_t bytes, int change) {
        visits.push_back({data, bytes, change});
        // Mapped and accessible at both times.
        Access access = Access::kNone;
        EXPECT_EQ(device().GetAccess(At(data), {}, &access), Status::kSuccess);
        EXPECT_EQ(access, Access::kReadWrite);
        // No lock is held: the chain answers queries and serves a request. If a
        // callback of a release grew the chain, Release would never end.
        facade().GetStats(kPlace);
        if (change < 0) return;
        if (std::exchange(is_inside, true)) return;
        facade().Alloc(kPlace, 256).reset();
        is_inside = false;
      });
  AllocationPtr block = Alloc(2 * kPage);
  ASSERT_GE(visits.size(), 2U);
  std::size_t mapped = 0;
  for (const Visit& visit : visits) {
    EXPECT_EQ(visit.change, 1);
    mapped += visit.bytes;
  }
  EXPECT_EQ(mapped, Reserved());
  block.reset();
  facade().Release(kPlace);
  for (const Visit& visit : visits) {
    if (visit.change < 0) mapped -= visit.bytes;
  }
  EXPECT_EQ(mapped, 0U);
}

}  // namespace
}  // namespace strata
