// A facade with device memory from the driver's pools: streams, orphans,
// statistics, limits and contradictions.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

#include "strata/allocation/error.h"
#include "strata/facade/allocator_facade.h"
#include "strata/tests/facade/facade_fixture.h"
#include "strata/tests/testing/devices/toy_platform.h"

namespace strata {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;

class FacadeCudaMallocAsyncTest : public FacadeFixture {
 protected:
  explicit FacadeCudaMallocAsyncTest(int devices = 1)
      : FacadeFixture(devices) {}

  AllocatorFacade& BuildAsync(const std::string& options = "") {
    return Build("use_cuda_malloc_async_allocator " + options);
  }
};

class FacadeCudaMallocAsyncDevicesTest : public FacadeCudaMallocAsyncTest {
 protected:
  FacadeCudaMallocAsyncDevicesTest() : FacadeCudaMallocAsyncTest(2) {}
};

TEST_F(FacadeCudaMallocAsyncTest, TheAliasChoosesIt) {
  BuildAsync();
  EXPECT_THAT(facade().Layers(kPlace), Contains("cuda_malloc_async"));
  EXPECT_EQ(Count(DeviceCall::kMallocFromPoolAsync), 0U);
  facade().Alloc(kPlace, 1000).reset();
  EXPECT_EQ(Count(DeviceCall::kMallocFromPoolAsync), 1U);
  EXPECT_EQ(Count(DeviceCall::kMemAlloc), 0U);
}

// Driver pools hold device memory only.
TEST_F(FacadeCudaMallocAsyncTest, OtherPlacesGoToTheSystem) {
  BuildAsync(
      "strata_host_strategy=cuda_malloc_async "
      "strata_pinned_strategy=cuda_malloc_async");
  for (const Place place : {ManagedPlace(0), PinnedPlace(0), HostPlace()}) {
    EXPECT_THAT(facade().Layers(place), Contains("direct")) << ToString(place);
    EXPECT_NE(facade().Alloc(place, 1000)->data(), nullptr);
  }
}

// stream_safe above does not wait for marks that the strategy handles.
TEST_F(FacadeCudaMallocAsyncTest, MarksCostNoWaitOnTheHost) {
  BuildAsync();
  const Stream user = NewStream();
  AllocationPtr block = facade().Alloc(kPlace, 1000, NewStream());
  EXPECT_TRUE(facade().RecordStream(block, user));
  EXPECT_FALSE(facade().RecordStream(block, facade().GetStream(*block)));
  block.reset();
  EXPECT_EQ(Count(DeviceCall::kStreamSynchronize), 0U);
  EXPECT_EQ(Count(DeviceCall::kEventRecord), 2U);
}

TEST_F(FacadeCudaMallocAsyncTest, MarksAreKeptWithoutTheStreamSafeLayer) {
  BuildAsync("use_stream_safe_cuda_allocator=false");
  AllocationPtr block = facade().Alloc(kPlace, 1000, NewStream());
  EXPECT_TRUE(facade().RecordStream(block, NewStream()));
  block.reset();
  EXPECT_EQ(Count(DeviceCall::kEventRecord), 2U);
}

TEST_F(FacadeCudaMallocAsyncTest, FreeOnAnotherStreamIsAMark) {
  BuildAsync();
  AllocationPtr block = facade().Alloc(kPlace, 1000, NewStream());
  Allocator* owner = block->owner();
  owner->Free(std::move(block), NewStream());
  EXPECT_EQ(Count(DeviceCall::kEventRecord), 2U);
  EXPECT_EQ(Count(DeviceCall::kStreamSynchronize), 0U);
}

TEST_F(FacadeCudaMallocAsyncTest, EraseStreamTakesTheMarkBack) {
  BuildAsync();
  const Stream user = NewStream();
  AllocationPtr block = facade().Alloc(kPlace, 1000, NewStream());
  facade().RecordStream(block, user);
  facade().EraseStream(*block, user);
  block.reset();
  EXPECT_EQ(Count(DeviceCall::kEventRecord), 0U);
}

// An event of this device cannot order a stream of another one, so the layer
// above defers such frees.
TEST_F(FacadeCudaMallocAsyncDevicesTest, ForeignMarksAreKeptAbove) {
  BuildAsync();
  AllocationPtr block = facade().Alloc(kPlace, 1000, NewStream());
  EXPECT_TRUE(facade().RecordStream(block, NewStream(1)));
  block.reset();
  EXPECT_EQ(Count(DeviceCall::kFreeAsync), 0U);
  facade().Release(kPlace);
  EXPECT_EQ(Count(DeviceCall::kFreeAsync), 1U);
  EXPECT_EQ(Count(DeviceCall::kEventRecord, 1), 1U);
  EXPECT_EQ(Count(DeviceCall::kEventRecord), 0U);
}

// paddle.md §5-B11.
TEST_F(FacadeCudaMallocAsyncDevicesTest, EveryDeviceHasItsThreshold) {
  BuildAsync("cuda_memory_async_pool_release_threshold=4096");
  for (int i = 0; i < 2; ++i) {
    const CallLog log(device(i));
    facade().Alloc(DevicePlace(i), 1000).reset();
    const auto sets = log.Of(DeviceCall::kPoolSetAttribute);
    ASSERT_EQ(sets.size(), 1U) << i;
    EXPECT_EQ(sets[0].bytes, 4096U);
  }
}

TEST_F(FacadeCudaMallocAsyncTest, StatisticsAreTheDriversAndTheCallers) {
  BuildAsync();
  const Stream stream = NewStream();
  const AllocationPtr one = facade().Alloc(kPlace, 1000);
  AllocationPtr two = facade().Alloc(kPlace, Mebibytes(32), stream);
  EXPECT_EQ(facade().GetStats(kPlace).reserved_bytes, Mebibytes(64));
  EXPECT_EQ(facade().GetStats(kPlace).in_use_bytes, Mebibytes(32) + 1024);
  two.reset();
  EXPECT_EQ(facade().Release(kPlace), Mebibytes(32));
  EXPECT_EQ(facade().GetStats(kPlace).reserved_bytes, Mebibytes(32));
  EXPECT_EQ(facade().GetStats(kPlace).peak_reserved_bytes, Mebibytes(64));
  facade().ResetPeak(kPlace);
  facade().GetAllocator(kPlace).ResetPeak();
  EXPECT_EQ(facade().GetStats(kPlace).peak_reserved_bytes, Mebibytes(32));
}

TEST_F(FacadeCudaMallocAsyncTest, TheLimitIsNamedWithItsNumbers) {
  BuildAsync("gpu_memory_limit_mb=20");
  const AllocationPtr block = facade().Alloc(kPlace, Mebibytes(15));
  try {
    facade().Alloc(kPlace, Mebibytes(6));
    FAIL() << "21 MiB of 20 were given";
  } catch (const OutOfMemory& error) {
    EXPECT_EQ(error.failure().reason, Failure::Reason::kLimit);
    EXPECT_EQ(error.failure().limit_bytes, Mebibytes(20));
    EXPECT_STREQ(error.failure().layer, "cuda_malloc_async");
  }
}

TEST_F(FacadeCudaMallocAsyncTest, NobodyCanVisitTheDriversChunks) {
  BuildAsync();
  const auto ignore = [](Place, void*, std::size_t, int) {};
  EXPECT_THROW(facade().AddVisitor(kPlace, ignore), std::logic_error);
  facade().AddVisitor(ManagedPlace(0), ignore);
}

// The driver grows in whole steps. A limit in MiB may be no multiple of a step.
TEST_F(FacadeCudaMallocAsyncTest, TheLimitThatIsAdvisedWouldDo) {
  BuildAsync("gpu_memory_limit_mb=35");
  const AllocationPtr most = facade().Alloc(kPlace, Mebibytes(32));
  const AllocationPtr rest = facade().Alloc(kPlace, Mebibytes(2));
  try {
    facade().Alloc(kPlace, Mebibytes(1));
    FAIL() << "the driver would have had to reserve 36 MiB of 35";
  } catch (const OutOfMemory& error) {
    EXPECT_THAT(error.what(), HasSubstr("higher by 1 MiB would have met"));
  }
}

TEST_F(FacadeCudaMallocAsyncTest, AsMuchAsWasAdvisedIsEnough) {
  BuildAsync("gpu_memory_limit_mb=36");
  const AllocationPtr most = facade().Alloc(kPlace, Mebibytes(32));
  const AllocationPtr rest = facade().Alloc(kPlace, Mebibytes(2));
  EXPECT_NE(facade().Alloc(kPlace, Mebibytes(1)), nullptr);
}

// Orphans: blocks that outlive their stream, or the facade, are freed on the
// free stream of the place, which lives as long.
TEST_F(FacadeCudaMallocAsyncTest, ABlockOutlivesItsStream) {
  BuildAsync();
  const Stream stream = NewStream();
  AllocationPtr block = facade().Alloc(kPlace, 1000, stream);
  facade().StreamDestroyed(stream);
  Destroy(stream);
  const CallLog log(device());
  block.reset();
  EXPECT_EQ(log.On(stream), 0U);
  EXPECT_EQ(log.Of(DeviceCall::kFreeAsync).size(), 1U);
  EXPECT_EQ(log.Failed(), 0U);
}

// paddle.md §5 B2: a deferred free called a destroyed allocator.
TEST_F(FacadeCudaMallocAsyncTest, BlocksOutliveTheFacade) {
  BuildAsync();
  const Stream user = NewStream();
  AllocationPtr plain = facade().Alloc(kPlace, 1000, NewStream());
  AllocationPtr marked = facade().Alloc(kPlace, 1000, NewStream());
  facade().RecordStream(marked, user);
  facade_.reset();
  EXPECT_EQ(device().Leaks().pools, 1U);
  plain.reset();
  EXPECT_EQ(device().Leaks().pools, 1U);
  marked.reset();
  EXPECT_EQ(device().Leaks().pools, 0U);
}

TEST_F(FacadeCudaMallocAsyncTest, AMarkOutlivesItsStream) {
  BuildAsync();
  const Stream user = NewStream();
  AllocationPtr block = facade().Alloc(kPlace, 1000, NewStream());
  facade().RecordStream(block, user);
  facade().StreamDestroyed(user);
  Destroy(user);
  const CallLog log(device());
  block.reset();
  EXPECT_EQ(log.On(user), 0U);
  EXPECT_EQ(log.Failed(), 0U);
}

TEST_F(FacadeCudaMallocAsyncTest, TwoFacadesHavePoolsOfTheirOwn) {
  BuildAsync();
  AllocatorFacade second(Options::Parse("use_cuda_malloc_async_allocator"),
                         platform_);
  const AllocationPtr one = facade().Alloc(kPlace, 1000);
  EXPECT_EQ(second.GetStats(kPlace).reserved_bytes, 0U);
  const AllocationPtr other = second.Alloc(kPlace, 1000);
  EXPECT_EQ(device().Leaks().pools, 2U);
}

TEST(FacadeWithoutPoolsTest, NamesTheDeviceThatHasNone) {
  const std::string text = TextOf<std::invalid_argument>([] {
    AllocatorFacade facade(Options::Parse("use_cuda_malloc_async_allocator"),
                           MakeToyPlatform(PlatformOptions()));
  });
  EXPECT_THAT(text,
              AllOf(HasSubstr("cuda_malloc_async"), HasSubstr("device:0")));
}

class FacadeManagedDeviceTest : public FacadeFixture {};

TEST_F(FacadeManagedDeviceTest, ChunksOfDeviceMemoryAreManaged) {
  Build("use_cuda_managed_memory");
  const AllocationPtr block = facade().Alloc(kPlace, 1000);
  EXPECT_EQ(block->place(), kPlace);
  EXPECT_EQ(Count(DeviceCall::kMallocManaged), 1U);
  EXPECT_EQ(Count(DeviceCall::kMemAlloc), 0U);
  EXPECT_THAT(facade().Layers(kPlace),
              AllOf(Contains("auto_growth"), Contains("managed")));
  static_cast<char*>(block->data())[999] = 1;  // the host can access it
}

TEST(FacadeWithoutManagedMemoryTest, NamesTheOptionAndTheDevice) {
  const std::string text = TextOf<std::invalid_argument>([] {
    AllocatorFacade facade(Options::Parse("use_cuda_managed_memory"),
                           MakeToyPlatform(PlatformOptions()));
  });
  EXPECT_THAT(
      text, AllOf(HasSubstr("use_cuda_managed_memory"), HasSubstr("device:0")));
}

}  // namespace
}  // namespace strata
