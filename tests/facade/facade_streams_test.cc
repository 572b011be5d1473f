// Streams: separate chains, marks, and streams that end.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>

#include "strata/allocation/error.h"
#include "strata/facade/allocator_facade.h"
#include "strata/tests/facade/facade_fixture.h"

namespace strata {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class FacadeStreamsTest : public FacadeFixture {
 protected:
  FacadeStreamsTest() : FacadeFixture(2) {}

  // Number of waits of the host.
  static std::size_t Waits(const CallLog& log) {
    return log.Of(DeviceCall::kStreamSynchronize).size() +
           log.Of(DeviceCall::kEventSynchronize).size() +
           log.Of(DeviceCall::kSynchronize).size();
  }
};

TEST_F(FacadeStreamsTest, ARequestWithoutAStreamIsForTheDefaultOne) {
  Build();
  const Stream stream = NewStream();
  facade().SetDefaultStream(kPlace, stream);
  const AllocationPtr aligned = facade().Alloc(kPlace, Request{100, 1 << 16});
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(aligned->data()) % (1 << 16), 0U);
  EXPECT_EQ(facade().GetStream(*aligned), stream);
  Failure failure;
  const AllocationPtr tried =
      facade().TryAlloc(kPlace, Request{100, 1 << 16}, failure);
  ASSERT_NE(tried, nullptr);
  EXPECT_EQ(facade().GetStream(*tried), stream);
  EXPECT_EQ(facade().TryAlloc(kPlace, Request{2 * kMemoryBytes}, failure),
            nullptr);
  EXPECT_EQ(failure.reason, Failure::Reason::kDeviceMemory);
  EXPECT_THROW(facade().Alloc(kPlace, Request{100, 3}), std::invalid_argument);
  EXPECT_THROW(facade().Alloc(DevicePlace(7), Request{100}),
               std::invalid_argument);
}

TEST_F(FacadeStreamsTest, TheDefaultStreamIsTheLegacyOne) {
  Build();
  EXPECT_EQ(facade().GetDefaultStream(DevicePlace(1)),
            device(1).LegacyStream());
  EXPECT_EQ(&facade().GetAllocator(kPlace),
            &facade().GetAllocator(kPlace, device().LegacyStream()));
}

TEST_F(FacadeStreamsTest, EachStreamGetsAChainOfItsOwnWithoutADeviceCall) {
  Build();
  const Stream a = NewStream();
  const Stream b = NewStream();
  const std::uint64_t before = CountAll();
  Allocator& of_a = facade().GetAllocator(kPlace, a);
  Allocator& of_b = facade().GetAllocator(kPlace, b);
  EXPECT_NE(&of_a, &of_b);
  EXPECT_NE(&of_a, &facade().GetAllocator(kPlace));
  EXPECT_EQ(&of_a, &facade().GetAllocator(kPlace, a));
  EXPECT_EQ(CountAll(), before);
}

TEST_F(FacadeStreamsTest, AnAllocationKnowsItsStream) {
  Build();
  const Stream stream = NewStream();
  const AllocationPtr allocation = facade().Alloc(kPlace, 100, stream);
  EXPECT_EQ(facade().GetStream(*allocation), stream);
  EXPECT_TRUE(facade().InSameStream(*allocation, stream));
  EXPECT_FALSE(facade().InSameStream(*allocation, device().LegacyStream()));
  EXPECT_EQ(facade().GetStream(*facade().AllocShared(kPlace, 1, stream)),
            stream);
}

TEST_F(FacadeStreamsTest, RefusesAStreamThatNamesNone) {
  Build();
  EXPECT_THROW(facade().Alloc(kPlace, 1, Stream()), std::invalid_argument);
  const AllocationPtr allocation = facade().Alloc(kPlace, 1);
  EXPECT_THROW(facade().RecordStream(allocation, Stream()),
               std::invalid_argument);
  EXPECT_THROW(facade().StreamDestroyed(Stream()), std::invalid_argument);
}

TEST_F(FacadeStreamsTest, RefusesAStreamOfAnotherDevice) {
  Build();
  const Stream stream = NewStream(1);
  EXPECT_THAT(
      TextOf<std::invalid_argument>([&] { facade().Alloc(kPlace, 1, stream); }),
      AllOf(HasSubstr("device:0"), HasSubstr("device 1")));
}

TEST_F(FacadeStreamsTest, HostMemoryHasOneChainWhateverTheStream) {
  Build();
  const Stream stream = NewStream();
  EXPECT_EQ(&facade().GetAllocator(HostPlace(), stream),
            &facade().GetAllocator(HostPlace()));
  EXPECT_EQ(&facade().GetAllocator(PinnedPlace(1), stream),
            &facade().GetAllocator(PinnedPlace(1)));
}

TEST_F(FacadeStreamsTest, MemoryWithoutStreamsHasNoDefaultStreamToSet) {
  Build();
  const Stream stream = NewStream();
  for (const Place place : {HostPlace(), PinnedPlace(0)}) {
    EXPECT_THAT(TextOf<std::invalid_argument>(
                    [&] { facade().SetDefaultStream(place, stream); }),
                HasSubstr(ToString(place)));
    EXPECT_EQ(facade().GetDefaultStream(place).uid, 0U);
  }
  facade().SetDefaultStream(ManagedPlace(0), stream);
  EXPECT_EQ(facade().GetDefaultStream(ManagedPlace(0)), stream);
}

TEST_F(FacadeStreamsTest, SetsTheDefaultStreamOnceBeforeItsFirstUse) {
  Build();
  const Stream stream = NewStream();
  facade().SetDefaultStream(kPlace, stream);
  EXPECT_EQ(facade().GetDefaultStream(kPlace), stream);
  EXPECT_EQ(facade().GetStream(*facade().Alloc(kPlace, 1)), stream);
  EXPECT_THROW(facade().SetDefaultStream(kPlace, NewStream()),
               std::logic_error);
}

TEST_F(FacadeStreamsTest, KeepsADefaultStreamThatWasUsed) {
  // Also where no layer counts requests.
  for (const char* options : {"", "strata_stat=0"}) {
    Build(options);
    facade().Alloc(kPlace, 1).reset();
    EXPECT_THROW(facade().SetDefaultStream(kPlace, NewStream()),
                 std::logic_error);
    EXPECT_EQ(facade().GetDefaultStream(kPlace), device().LegacyStream());
  }
}

TEST_F(FacadeStreamsTest, ARawHandleNamesItsStream) {
  Build();
  const Stream stream = NewStream();
  const AllocationPtr by_handle = facade().Alloc(kPlace, 100, stream.handle);
  EXPECT_EQ(facade().GetStream(*by_handle), stream);
  EXPECT_EQ(by_handle->owner(), &facade().GetAllocator(kPlace, stream));
}

TEST_F(FacadeStreamsTest, ARawHandleIsLookedUpOnce) {
  Build();
  const Stream stream = NewStream();
  facade().Alloc(kPlace, 100, stream.handle).reset();
  const std::uint64_t before = CountAll();
  facade().Alloc(kPlace, 100, stream.handle).reset();
  EXPECT_EQ(CountAll(), before);
  EXPECT_EQ(Count(DeviceCall::kWrapStream), 1U);
}

TEST_F(FacadeStreamsTest, TheDriversFixedNamesNeedNoLookUp) {
  Build();
  EXPECT_EQ(facade().Wrap(nullptr, 1), device(1).LegacyStream());
  EXPECT_EQ(facade().Wrap(reinterpret_cast<void*>(1), 1),
            device(1).LegacyStream());
  EXPECT_EQ(facade().Wrap(reinterpret_cast<void*>(2), 1),
            device(1).PerThreadStream());
  void* const legacy = nullptr;
  EXPECT_EQ(facade().GetStream(*facade().Alloc(kPlace, 1, legacy)),
            device().LegacyStream());
  EXPECT_EQ(Count(DeviceCall::kWrapStream) + Count(DeviceCall::kWrapStream, 1),
            0U);
}

TEST_F(FacadeStreamsTest, RefusesAHandleThatIsNoStream) {
  Build();
  EXPECT_THAT(TextOf<std::invalid_argument>([&] {
                facade().Alloc(kPlace, 1, reinterpret_cast<void*>(0x1234));
              }),
              HasSubstr("no stream"));
  EXPECT_THROW(facade().Wrap(nullptr, 2), std::invalid_argument);
  EXPECT_THROW(facade().Wrap(nullptr, -1), std::invalid_argument);
}

TEST_F(FacadeStreamsTest, ThePerThreadHandleIsAnotherStreamInEveryThread) {
  Build();
  void* const handle = reinterpret_cast<void*>(2);
  const AllocationPtr mine = facade().Alloc(kPlace, 100, handle);
  AllocationPtr its;
  Stream its_stream;
  std::thread([&] {
    its = facade().Alloc(kPlace, 100, handle);
    its_stream = device().PerThreadStream();
  }).join();
  EXPECT_EQ(facade().GetStream(*mine), device().PerThreadStream());
  EXPECT_EQ(facade().GetStream(*its), its_stream);
  EXPECT_NE(mine->owner(), its->owner());
}

TEST_F(FacadeStreamsTest, FreeingAMarkedAllocationIsNoDeviceCall) {
  Build();
  const Stream other = NewStream();
  AllocationPtr allocation = facade().Alloc(kPlace, 100);
  EXPECT_TRUE(facade().RecordStream(allocation, other));
  const CallLog log(device());
  allocation.reset();
  EXPECT_TRUE(log.calls().empty());
  EXPECT_EQ(facade().GetStats(kPlace).live_allocations(), 0U);
}

TEST_F(FacadeStreamsTest, AMarkOfItsOwnStreamIsNone) {
  Build();
  const Stream own = NewStream();
  AllocationPtr allocation = facade().Alloc(kPlace, 100, own);
  EXPECT_FALSE(facade().RecordStream(*allocation, own));
  const CallLog log(device());
  allocation.reset();
  EXPECT_TRUE(log.calls().empty());
}

TEST_F(FacadeStreamsTest, AnErasedMarkIsNotWaitedFor) {
  Build();
  const Stream other = NewStream();
  AllocationPtr allocation = facade().Alloc(kPlace, 100);
  facade().RecordStream(allocation, other);
  facade().EraseStream(*allocation, other);
  const CallLog log(device());
  allocation.reset();
  EXPECT_TRUE(log.calls().empty());
}

TEST_F(FacadeStreamsTest, AStreamOfAnotherDeviceCanBeMarked) {
  Build();
  const Stream peer = NewStream(1);
  AllocationPtr allocation = facade().Alloc(kPlace, 100);
  EXPECT_TRUE(facade().RecordStream(allocation, peer));
  const CallLog log(device(1));
  allocation.reset();
  facade().Release(kPlace);
  EXPECT_EQ(log.Of(DeviceCall::kEventRecord).size(), 1U);
  EXPECT_EQ(log.On(peer), 1U);
}

TEST_F(FacadeStreamsTest, FreeingOnTheOwnStreamWaitsForNothing) {
  Build();
  AllocationPtr allocation = facade().Alloc(kPlace, 100);
  const CallLog log(device());
  facade().GetAllocator(kPlace).Free(std::move(allocation),
                                     device().LegacyStream());
  EXPECT_TRUE(log.calls().empty());
}

TEST_F(FacadeStreamsTest, AnEndingStreamWithoutWorkGivesItsIdleMemoryBack) {
  Build();
  const Stream stream = NewStream();
  facade().Alloc(kPlace, Mebibytes(12), stream).reset();
  facade().StreamDestroyed(stream);
  EXPECT_EQ(facade().GetStats(kPlace).reserved_bytes, 0U);
}

TEST_F(FacadeStreamsTest, AnEndingStreamKeepsOnlyWhatIsInUse) {
  Build();
  const Stream stream = NewStream();
  const AllocationPtr used = facade().Alloc(kPlace, Mebibytes(12), stream);
  facade().Alloc(kPlace, Mebibytes(14), stream).reset();
  facade().StreamDestroyed(stream);
  EXPECT_EQ(facade().GetStats(kPlace).reserved_bytes, Mebibytes(12));
}

TEST_F(FacadeStreamsTest, MemoryOfADestroyedStreamStaysValidAndIsFreedLater) {
  Build();
  const Stream stream = NewStream();
  AllocationPtr plain = facade().Alloc(kPlace, Mebibytes(12), stream);
  AllocationPtr marked = facade().Alloc(kPlace, Mebibytes(14), stream);
  void* const data = plain->data();
  facade().StreamDestroyed(stream);
  Destroy(stream);
  const Stream other = NewStream();

  const CallLog log(device());
  EXPECT_EQ(plain->data(), data);
  EXPECT_EQ(facade().GetStream(*plain), stream);
  EXPECT_TRUE(facade().RecordStream(marked, other));
  EXPECT_EQ(facade().GetStats(kPlace).live_allocations(), 2U);
  plain.reset();
  marked.reset();
  facade().Release(kPlace);
  EXPECT_EQ(log.On(stream), 0U);  // no call uses the destroyed stream
  EXPECT_EQ(log.Failed(), 0U);
  EXPECT_EQ(facade().GetStats(kPlace).reserved_bytes, 0U);
}

TEST_F(FacadeStreamsTest, NobodyTouchesAStreamThatIsGoneForItsMarks) {
  Build();
  const Stream other = NewStream();
  AllocationPtr allocation = facade().Alloc(kPlace, 100);
  AllocationPtr managed = facade().Alloc(ManagedPlace(0), 100);
  AllocationPtr pinned = facade().Alloc(PinnedPlace(0), 100);
  facade().RecordStream(allocation, other);
  facade().RecordStream(managed, other);
  facade().RecordStream(pinned, other);
  {
    const CallLog log(device());
    facade().StreamDestroyed(other);
    EXPECT_EQ(Waits(log), 0U);
  }
  Destroy(other);
  const CallLog log(device());
  allocation.reset();
  managed.reset();
  pinned.reset();
  EXPECT_GT(facade().Release(kPlace), 0U);
  EXPECT_EQ(log.On(other), 0U);
  EXPECT_EQ(log.Failed(), 0U);
}

TEST_F(FacadeStreamsTest, ARecycledHandleGetsAChainOfItsOwn) {
  Build();
  const Stream old_stream = NewStream();
  const AllocationPtr old_block =
      facade().Alloc(kPlace, 100, old_stream.handle);
  facade().StreamDestroyed(old_stream);
  Destroy(old_stream);
  const Stream new_stream = NewStream();
  ASSERT_EQ(new_stream.handle, old_stream.handle);
  const AllocationPtr new_block =
      facade().Alloc(kPlace, 100, new_stream.handle);
  EXPECT_EQ(facade().GetStream(*new_block), new_stream);
  EXPECT_EQ(facade().GetStream(*old_block), old_stream);
}

TEST_F(FacadeStreamsTest, ADefaultStreamCannotBeDestroyed) {
  Build();
  const Stream stream = NewStream();
  facade().SetDefaultStream(kPlace, stream);
  EXPECT_THROW(facade().StreamDestroyed(stream), std::invalid_argument);
  EXPECT_THROW(facade().StreamDestroyed(device(1).LegacyStream()),
               std::invalid_argument);
  EXPECT_THROW(facade().StreamDestroyed(device().PerThreadStream()),
               std::invalid_argument);
  EXPECT_EQ(facade().GetStream(*facade().Alloc(kPlace, 1)), stream);
}

// The legacy streams of all devices share one uid.
TEST_F(FacadeStreamsTest, AStreamOfAnotherDeviceIsRefusedAlsoOnceItIsKnown) {
  Build();
  const Stream own = device(0).LegacyStream();
  const Stream other = device(1).LegacyStream();
  facade().Alloc(DevicePlace(0), 100, own).reset();
  facade().Alloc(DevicePlace(1), 100, other).reset();
  facade().Alloc(DevicePlace(0), 100, own).reset();
  EXPECT_THAT(TextOf<std::invalid_argument>(
                  [&] { facade().Alloc(DevicePlace(0), 100, other); }),
              HasSubstr("device 1"));
}

class CheckStreamsTest : public FacadeStreamsTest {
 protected:
  CheckStreamsTest() { Build("strata_check_streams"); }
};

TEST_F(CheckStreamsTest, NamesAStreamWhoseHandleWasRecycled) {
  const Stream old_stream = NewStream();
  facade().Alloc(kPlace, 100, old_stream).reset();
  Destroy(old_stream);  // without notice
  const Stream new_stream = NewStream();
  ASSERT_EQ(new_stream.handle, old_stream.handle);
  const auto names_both =
      AllOf(HasSubstr(std::to_string(old_stream.uid)),
            HasSubstr(std::to_string(new_stream.uid)), HasSubstr("recycled"));
  EXPECT_THAT(TextOf<std::invalid_argument>(
                  [&] { facade().Alloc(kPlace, 100, old_stream); }),
              names_both);
  const AllocationPtr allocation = facade().Alloc(kPlace, 100);
  EXPECT_THAT(TextOf<std::invalid_argument>(
                  [&] { facade().RecordStream(allocation, old_stream); }),
              names_both);
}

TEST_F(CheckStreamsTest, NamesARawHandleThatWasRecycled) {
  const Stream old_stream = NewStream();
  facade().Alloc(kPlace, 100, old_stream.handle).reset();
  Destroy(old_stream);  // without notice
  const Stream new_stream = NewStream();
  EXPECT_THAT(
      TextOf<std::invalid_argument>(
          [&] { facade().Alloc(kPlace, 100, new_stream.handle); }),
      AllOf(HasSubstr(std::to_string(old_stream.uid)), HasSubstr("recycled")));
}

TEST_F(CheckStreamsTest, NamesAStreamThatIsGone) {
  const Stream stream = NewStream();
  Destroy(stream);
  EXPECT_THAT(TextOf<std::invalid_argument>(
                  [&] { facade().Alloc(kPlace, 100, stream); }),
              AllOf(HasSubstr("no longer exists"),
                    testing::Not(HasSubstr("recycled"))));
}

TEST_F(CheckStreamsTest, AcceptsAHandleRecycledAfterNotice) {
  const Stream old_stream = NewStream();
  facade().Alloc(kPlace, 100, old_stream.handle).reset();
  facade().StreamDestroyed(old_stream);
  Destroy(old_stream);
  const Stream new_stream = NewStream();
  EXPECT_EQ(facade().GetStream(*facade().Alloc(kPlace, 1, new_stream.handle)),
            new_stream);
  EXPECT_EQ(facade().GetStream(*facade().Alloc(kPlace, 1, new_stream)),
            new_stream);
}

}  // namespace
}  // namespace strata
