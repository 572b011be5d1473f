// Exhaustion, limits, callbacks and debug fill.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "strata/allocation/error.h"
#include "strata/facade/allocator_facade.h"
#include "strata/strategy/registry.h"
#include "strata/tests/facade/facade_fixture.h"
#include "strata/tests/testing/layers/pool_place.h"

namespace strata {
namespace {

using testing::HasSubstr;

class FacadeMemoryTest : public FacadeFixture {
 protected:
  // The OutOfMemory that a request for `bytes` throws.
  OutOfMemory Exhaust(std::size_t bytes) {
    try {
      facade().Alloc(kPlace, bytes);
    } catch (const OutOfMemory& error) {
      return error;
    }
    ADD_FAILURE() << "there was memory";
    return OutOfMemory(Failure(), {}, "");
  }
};

TEST_F(FacadeMemoryTest, OutOfMemoryCarriesTheNumbers) {
  Build();
  const AllocationPtr held = facade().Alloc(kPlace, Mebibytes(40));
  const OutOfMemory error = Exhaust(Mebibytes(30) + 1);
  EXPECT_EQ(error.failure().reason, Failure::Reason::kDeviceMemory);
  EXPECT_EQ(error.failure().place, kPlace);
  EXPECT_EQ(error.failure().requested_bytes, Mebibytes(30) + 1);
  EXPECT_GE(error.failure().rounded_bytes, Mebibytes(30) + 1);
  EXPECT_EQ(error.failure().reserved_bytes, Mebibytes(40));
  EXPECT_EQ(error.failure().in_use_bytes, Mebibytes(40));
  EXPECT_EQ(error.failure().device_free_bytes, Mebibytes(24));
  EXPECT_EQ(error.failure().device_total_bytes, kMemoryBytes);
  EXPECT_THAT(error.what(), HasSubstr("device:0"));
  EXPECT_THAT(error.what(), HasSubstr("24.0 MiB free of 64.0 MiB"));
  EXPECT_EQ(error.advice(), "");
}

// The sum over all streams, for every strategy.
TEST_F(FacadeMemoryTest, OutOfMemorySaysWhatIsInUseAndWhatIsCached) {
  for (const std::string strategy :
       {"auto_growth", "bfc", "direct", "naive_best_fit", "thread_local",
        "pool", "cuda_malloc_async"}) {
    SCOPED_TRACE(strategy);
    Build("allocator_strategy=" + strategy);
    const AllocationPtr held = facade().Alloc(kPlace, Mebibytes(20));
    const AllocationPtr rest =
        facade().Alloc(kPlace, Mebibytes(3), NewStream());
    const OutOfMemory error = Exhaust(Mebibytes(60));
    const Stats stats = facade().GetStats(kPlace);
    const Failure& failure = error.failure();
    EXPECT_TRUE(failure.knows_place);
    EXPECT_EQ(failure.live_bytes, stats.in_use_bytes);
    EXPECT_EQ(failure.cached_bytes, stats.reserved_bytes - stats.in_use_bytes);
    EXPECT_THAT(error.what(),
                HasSubstr("; in use: " + HumanBytes(failure.live_bytes) +
                          "; free in cached blocks: "));
  }
}

// The explanation would have to lock all streams.
TEST_F(FacadeMemoryTest, ARequestThatOnlyTriesIsNotExplained) {
  Build();
  Failure failure;
  const Request request{2 * kMemoryBytes, 0, kNoRetry};
  EXPECT_EQ(facade().TryAlloc(kPlace, request,
                              facade().GetDefaultStream(kPlace), failure),
            nullptr);
  EXPECT_FALSE(failure.knows_place);
}

TEST_F(FacadeMemoryTest, OutOfMemoryNamesTheLimitByItsFlag) {
  const auto text = [this](const std::string& options, Place place = kPlace) {
    Build(options);
    return TextOf<OutOfMemory>([&] { facade().Alloc(place, Mebibytes(30)); });
  };
  EXPECT_THAT(text("gpu_memory_limit_mb=10"),
              HasSubstr("0.0 MiB reserved of 10.0 MiB allowed by "
                        "--gpu_memory_limit_mb"));
  EXPECT_THAT(text("gpu_memory_limit_mb=10,allocator_strategy=bfc"),
              HasSubstr("of 10.0 MiB allowed by --gpu_memory_limit_mb"));
  EXPECT_THAT(
      text("gpu_memory_limit_mb=10,allocator_strategy=cuda_malloc_async"),
      HasSubstr("of 10.0 MiB allowed by --gpu_memory_limit_mb"));
  EXPECT_THAT(text("bfc_memory_limit=10MiB,allocator_strategy=bfc"),
              HasSubstr("of 10.0 MiB allowed by --bfc_memory_limit"));
  EXPECT_THAT(text("bfc_memory_fraction=0.25,allocator_strategy=bfc"),
              HasSubstr("of 16.0 MiB allowed by --bfc_memory_fraction"));
  EXPECT_THAT(text("strata_in_use_limit=10MiB"),
              HasSubstr("0.0 MiB in use of 10.0 MiB allowed by "
                        "--strata_in_use_limit"));
  EXPECT_THAT(text("strata_host_limit=10MiB", HostPlace()),
              HasSubstr("of 10.0 MiB allowed by --strata_host_limit"));
  EXPECT_THAT(text("strata_pinned_limit=10MiB", PinnedPlace(0)),
              HasSubstr("of 10.0 MiB allowed by --strata_pinned_limit"));
}

TEST_F(FacadeMemoryTest, OutOfMemoryReportsEveryLayer) {
  Build();
  const AllocationPtr held = facade().Alloc(kPlace, Mebibytes(40));
  std::vector<std::string> names;
  const OutOfMemory error = Exhaust(Mebibytes(40));
  for (const OutOfMemory::LayerReport& layer : error.layers()) {
    names.push_back(layer.layer);
    if (layer.layer == "stat") {
      EXPECT_EQ(layer.stats.in_use_bytes, Mebibytes(40));
    }
    if (layer.layer == "chunk_pool") {
      EXPECT_EQ(layer.stats.reserved_bytes, Mebibytes(40));
    }
  }
  EXPECT_EQ(names, facade().Layers(kPlace));
}

TEST_F(FacadeMemoryTest, ExhaustionLeavesTheFacadeUsable) {
  Build();
  const AllocationPtr held = facade().Alloc(kPlace, Mebibytes(40));
  Exhaust(Mebibytes(40));
  EXPECT_NE(facade().Alloc(kPlace, Mebibytes(20)), nullptr);
}

TEST_F(FacadeMemoryTest, SizesThatOverflowAreRefused) {
  Build();
  for (const std::size_t bytes : {SIZE_MAX, SIZE_MAX - 255, SIZE_MAX / 2}) {
    EXPECT_THROW(facade().Alloc(kPlace, bytes), BadAlloc);
    EXPECT_THROW(
        facade().GetAllocator(kPlace).Allocate(Request{bytes, Mebibytes(1)}),
        BadAlloc);
  }
  EXPECT_EQ(facade().GetStats(kPlace).live_allocations(), 0U);
}

// The advice for a request of `bytes` with a limit of `limit` MiB, after 7 MiB.
// The exact rule allocates the same chunks with any limit.
std::string AdviceWithLimit(const std::shared_ptr<Platform>& platform,
                            std::size_t limit, std::size_t bytes) {
  AllocatorFacade facade(
      Options::Parse("auto_growth_chunk_rule=exact,gpu_memory_limit_mb=" +
                     std::to_string(limit)),
      platform);
  const AllocationPtr held = facade.Alloc(kPlace, Mebibytes(7));
  try {
    facade.Alloc(kPlace, bytes);
  } catch (const OutOfMemory& error) {
    EXPECT_EQ(error.failure().reason, Failure::Reason::kLimit);
    EXPECT_EQ(error.failure().limit_bytes, Mebibytes(limit));
    EXPECT_THAT(error.what(), testing::EndsWith(error.advice()));
    return error.advice();
  }
  return "met";
}

TEST_F(FacadeMemoryTest, FollowingTheAdviceOnALimitMeetsTheRequest) {
  for (const std::size_t bytes :
       {Mebibytes(5), Mebibytes(5) + 300, Mebibytes(20) - 1, Mebibytes(31)}) {
    const std::string advice = AdviceWithLimit(platform_, 10, bytes);
    ASSERT_THAT(advice, HasSubstr("--gpu_memory_limit_mb higher by "));
    const std::size_t more =
        std::stoul(advice.substr(advice.find("higher by ") + 10));
    EXPECT_EQ(AdviceWithLimit(platform_, 10 + more, bytes), "met");
    EXPECT_NE(AdviceWithLimit(platform_, 10 + more - 1, bytes), "met");
  }
}

TEST_F(FacadeMemoryTest, GivesNoAdviceThatWouldNotHelp) {
  // The device itself has no room, with any limit.
  EXPECT_EQ(AdviceWithLimit(platform_, 10, kMemoryBytes), "");
}

// The request would use the idle memory, so only the rest is missing.
TEST_F(FacadeMemoryTest, AdviceCountsIdleMemoryThatWouldMove) {
  Build("allocator_strategy=virtual_memory,gpu_memory_limit_mb=50");
  const AllocationPtr first = facade().Alloc(kPlace, Mebibytes(2));
  AllocationPtr idle = facade().Alloc(kPlace, Mebibytes(30));
  const AllocationPtr last = facade().Alloc(kPlace, Mebibytes(2));
  idle.reset();
  EXPECT_THAT(Exhaust(Mebibytes(50)).advice(), HasSubstr("higher by 4 MiB"));
  EXPECT_EQ(facade().GetStats(kPlace).reserved_bytes, Mebibytes(34));
}

TEST_F(FacadeMemoryTest, TheLimitHoldsForAllStreamsTogether) {
  Build("allocator_strategy=auto_growth,gpu_memory_limit_mb=20");
  const AllocationPtr a = facade().Alloc(kPlace, Mebibytes(10), NewStream());
  const AllocationPtr b = facade().Alloc(kPlace, Mebibytes(10), NewStream());
  EXPECT_THROW(facade().Alloc(kPlace, 1), OutOfMemory);
  EXPECT_EQ(device().Leaks().allocation_bytes, Mebibytes(20));
}

TEST_F(FacadeMemoryTest, TheLimitIsOnDeviceMemoryAlone) {
  Build("gpu_memory_limit_mb=4");
  EXPECT_NE(facade().Alloc(HostPlace(), Mebibytes(5)), nullptr);
  EXPECT_NE(facade().Alloc(PinnedPlace(0), Mebibytes(5)), nullptr);
}

TEST_F(FacadeMemoryTest, AnIdleChunkOfAnotherStreamIsReused) {
  Build("auto_growth_give_back_limit=0");
  facade().Alloc(kPlace, Mebibytes(40), NewStream()).reset();
  const AllocationPtr allocation =
      facade().Alloc(kPlace, Mebibytes(40), NewStream());
  EXPECT_EQ(Count(DeviceCall::kMemFree), 0U);  // moved, not released
  EXPECT_EQ(facade().GetStats(kPlace).reserved_bytes, Mebibytes(40));
}

TEST_F(FacadeMemoryTest, GrowthReplacesIdleChunksOfOtherStreams) {
  Build();
  facade().Alloc(kPlace, Mebibytes(20), NewStream()).reset();
  const AllocationPtr allocation =
      facade().Alloc(kPlace, Mebibytes(20), NewStream());
  EXPECT_EQ(facade().GetStats(kPlace).peak_reserved_bytes, Mebibytes(20));
}

TEST_F(FacadeMemoryTest, IdleChunksOfOtherStreamsAreGivenBackForALargerOne) {
  Build("allocator_strategy=auto_growth");
  facade().Alloc(kPlace, Mebibytes(30), NewStream()).reset();
  facade().Alloc(kPlace, Mebibytes(30), NewStream()).reset();
  const AllocationPtr allocation = facade().Alloc(kPlace, Mebibytes(60));
  EXPECT_EQ(facade().GetStats(kPlace).reserved_bytes, Mebibytes(60));
}

TEST_F(FacadeMemoryTest, AnImpossibleRequestCostsNobodyTheirCache) {
  Build();
  facade().Alloc(kPlace, Mebibytes(30)).reset();
  Exhaust(kMemoryBytes + 1);
  EXPECT_EQ(facade().GetStats(kPlace).reserved_bytes, Mebibytes(30));
}

TEST_F(FacadeMemoryTest, TheInUseLimitCountsCachedBlocksToo) {
  Build("strata_in_use_limit=1000");
  AllocationPtr first = facade().Alloc(kPlace, 600);
  facade().Alloc(kPlace, 400).reset();  // now there is a cached block
  const AllocationPtr second = facade().Alloc(kPlace, 400, NewStream());
  EXPECT_EQ(Exhaust(1).failure().reason, Failure::Reason::kBudget);
  first.reset();
  EXPECT_NE(facade().Alloc(kPlace, 600), nullptr);
}

TEST_F(FacadeMemoryTest, RefusesAnEmptyVisitorBeforeItChangesAnything) {
  Build();
  const auto layers = facade().Layers(HostPlace());
  for (const Place place : {kPlace, HostPlace(), PinnedPlace(0)}) {
    EXPECT_THROW(facade().AddVisitor(place, nullptr), std::invalid_argument);
    EXPECT_NE(facade().Alloc(place, 1000), nullptr);
  }
  EXPECT_EQ(facade().Layers(HostPlace()), layers);
}

class FacadeCallbackTest : public FacadeMemoryTest {};

TEST_F(FacadeCallbackTest, IsAskedOnceAndWhatItFreesServesTheRequest) {
  Build();
  AllocationPtr cache = facade().Alloc(kPlace, Mebibytes(40));
  int calls = 0;
  const auto callback = facade().AddOutOfMemoryCallback(
      kPlace, [&](Place place, std::size_t bytes) {
        ++calls;
        EXPECT_EQ(place, kPlace);
        EXPECT_EQ(bytes, Mebibytes(30));
        const std::size_t freed = cache->size();
        cache.reset();
        return freed;
      });
  const AllocationPtr allocation = facade().Alloc(kPlace, Mebibytes(30));
  EXPECT_EQ(calls, 1);
}

TEST_F(FacadeCallbackTest, WhatItFreesOnAnotherStreamServesTheRequest) {
  Build("auto_growth_give_back_limit=0");  // the ladder alone must see to it
  AllocationPtr cache = facade().Alloc(kPlace, Mebibytes(40), NewStream());
  const auto callback =
      facade().AddOutOfMemoryCallback(kPlace, [&](Place, std::size_t) {
        const std::size_t freed = cache->size();
        cache.reset();
        return freed;
      });
  EXPECT_NE(facade().Alloc(kPlace, Mebibytes(30), NewStream()), nullptr);
}

TEST_F(FacadeCallbackTest, IsNotAskedWhileIdleMemoryWillDo) {
  Build();
  facade().Alloc(kPlace, Mebibytes(40), NewStream()).reset();
  int calls = 0;
  const auto callback =
      facade().AddOutOfMemoryCallback(kPlace, [&](Place, std::size_t) {
        ++calls;
        return std::size_t{0};
      });
  EXPECT_NE(facade().Alloc(kPlace, Mebibytes(50)), nullptr);
  EXPECT_EQ(calls, 0);
}

TEST_F(FacadeCallbackTest, HasNoPartInAnotherPlacesExhaustion) {
  Build("strata_in_use_limit=100");
  int calls = 0;
  const auto callback =
      facade().AddOutOfMemoryCallback(kPlace, [&](Place, std::size_t) {
        ++calls;
        return std::size_t{0};
      });
  EXPECT_THROW(facade().Alloc(HostPlace(), 101), OutOfMemory);
  EXPECT_EQ(calls, 0);
}

TEST_F(FacadeCallbackTest, OneThatThrowsEndsInOutOfMemory) {
  Build();
  const auto callback =
      facade().AddOutOfMemoryCallback(kPlace, [](Place, std::size_t) {
        throw std::runtime_error("no idea");
        return std::size_t{0};
      });
  EXPECT_THROW(facade().Alloc(kPlace, 2 * kMemoryBytes), OutOfMemory);
}

TEST_F(FacadeCallbackTest, OneThatAllocatesTooMuchIsNotAskedForItsOwnSake) {
  Build();
  int calls = 0;
  const auto callback =
      facade().AddOutOfMemoryCallback(kPlace, [&](Place, std::size_t bytes) {
        ++calls;
        EXPECT_THROW(facade().Alloc(kPlace, bytes), OutOfMemory);
        return std::size_t{0};
      });
  EXPECT_THROW(facade().Alloc(kPlace, 2 * kMemoryBytes), OutOfMemory);
  EXPECT_EQ(calls, 1);
}

TEST_F(FacadeCallbackTest, EveryOneIsAsked) {
  Build();
  AllocationPtr caches[] = {facade().Alloc(kPlace, Mebibytes(30)),
                            facade().Alloc(kPlace, Mebibytes(30))};
  std::vector<OutOfMemoryCallback> callbacks;
  for (AllocationPtr& cache : caches) {
    callbacks.push_back(
        facade().AddOutOfMemoryCallback(kPlace, [&cache](Place, std::size_t) {
          cache.reset();
          return Mebibytes(30);
        }));
  }
  EXPECT_NE(facade().Alloc(kPlace, Mebibytes(60)), nullptr);
}

class FacadeFillTest : public FacadeFixture {};

TEST_F(FacadeFillTest, InitAllocatedMemFillsWith0xef) {
  Build("init_allocated_mem,allocator_strategy=naive_best_fit");
  const CallLog log(device());
  const AllocationPtr allocation = facade().Alloc(kPlace, 1000);
  const std::vector<CallRecord> fills = log.Of(DeviceCall::kMemsetAsync);
  ASSERT_EQ(fills.size(), 1U);
  EXPECT_EQ(fills[0].value, 0xEFU);
  EXPECT_EQ(fills[0].bytes, allocation->size());
}

TEST_F(FacadeFillTest, FillsOnceInTheOrderOfTheStream) {
  Build("alloc_fill_value=90");
  const Stream stream = NewStream();
  for (int i = 0; i < 2; ++i) {  // growth, then a hit
    const CallLog log(device());
    const AllocationPtr allocation = facade().Alloc(kPlace, 1000, stream);
    const std::vector<CallRecord> fills = log.Of(DeviceCall::kMemsetAsync);
    ASSERT_EQ(fills.size(), 1U);
    EXPECT_EQ(fills[0].ptr,
              reinterpret_cast<std::uintptr_t>(allocation->data()));
    EXPECT_EQ(fills[0].bytes, allocation->size());
    EXPECT_EQ(fills[0].value, 90U);
    EXPECT_EQ(fills[0].stream_uid, stream.uid);
    EXPECT_TRUE(log.Of(DeviceCall::kSynchronize).empty());
  }
}

TEST_F(FacadeFillTest, FillsHostMemory) {
  Build("alloc_fill_value=90");
  for (const Place place : {HostPlace(), PinnedPlace(0), ManagedPlace(0)}) {
    const AllocationPtr allocation = facade().Alloc(place, 1000);
    // The device fills managed memory.
    ASSERT_EQ(device().Synchronize(), Status::kSuccess);
    const auto* bytes = static_cast<const unsigned char*>(allocation->data());
    EXPECT_EQ(std::count(bytes, bytes + allocation->size(), 90),
              static_cast<std::ptrdiff_t>(allocation->size()));
  }
}

TEST_F(FacadeFillTest, SynchronisesOnceAfterTheFill) {
  Build("alloc_fill_value=0,sync_after_alloc");
  facade().Alloc(kPlace, 1000).reset();
  const CallLog log(device());
  const AllocationPtr hit = facade().Alloc(kPlace, 1000);
  const std::vector<CallRecord> calls = log.calls();
  ASSERT_EQ(calls.size(), 2U);
  EXPECT_EQ(calls[0].call, DeviceCall::kMemsetAsync);
  EXPECT_EQ(calls[1].call, DeviceCall::kSynchronize);
}

TEST_F(FacadeFillTest, AFillThatFailsGivesTheMemoryBack) {
  Build("alloc_fill_value=1");
  facade().Alloc(kPlace, 1000).reset();
  FaultRule rule;
  rule.call = DeviceCall::kMemsetAsync;
  device().AddFault(rule);
  EXPECT_THROW(facade().Alloc(kPlace, 1000), DeviceError);
  EXPECT_EQ(facade().GetStats(kPlace).live_allocations(), 0U);
  EXPECT_EQ(facade().GetStats(kPlace).in_use_bytes, 0U);
  device().ClearFaults();
  EXPECT_NE(facade().Alloc(kPlace, 1000), nullptr);
}

TEST_F(FacadeMemoryTest, ReleaseSaysAllThatItGave) {
  for (const std::string& strategy : StrategyNames()) {
    Build("allocator_strategy=" + strategy);
    const Stream stream = NewStream();
    const Stream other = NewStream();
    for (const bool of_stream : {false, true}) {
      AllocationPtr marked = facade().Alloc(kPlace, Mebibytes(4), stream);
      facade().Alloc(kPlace, Mebibytes(3), stream).reset();
      facade().RecordStream(marked, other);
      marked.reset();
      const std::size_t reserved = facade().GetStats(kPlace).reserved_bytes;
      const std::size_t given = of_stream ? facade().Release(kPlace, stream)
                                          : facade().Release(kPlace);
      EXPECT_GT(given, 0U) << strategy;
      EXPECT_EQ(reserved - given, facade().GetStats(kPlace).reserved_bytes)
          << strategy;
    }
    facade().StreamDestroyed(stream);
    facade().StreamDestroyed(other);
  }
}

// Work may still use it, so it must not be released to the system.
TEST_F(FacadeMemoryTest, WhatCannotBeWaitedForIsNotGivenBack) {
  for (const char* strategy :
       {"auto_growth", "bfc", "naive_best_fit", "pool", "thread_local"}) {
    Build(std::string("allocator_strategy=") + strategy);
    facade().Alloc(kPlace, Mebibytes(4)).reset();
    const std::uint64_t frees = device().CallCount(DeviceCall::kMemFree);
    for (const DeviceCall wait :
         {DeviceCall::kStreamSynchronize, DeviceCall::kEventSynchronize,
          DeviceCall::kSynchronize, DeviceCall::kStreamQuery,
          DeviceCall::kEventQuery}) {
      device().AddFault(FailAll(wait));
    }
    EXPECT_EQ(facade().Release(kPlace), 0U) << strategy;
    EXPECT_EQ(device().CallCount(DeviceCall::kMemFree), frees) << strategy;
    device().ClearFaults();
    EXPECT_GT(facade().Release(kPlace), 0U) << strategy;
    EXPECT_EQ(facade().GetStats(kPlace).reserved_bytes, 0U) << strategy;
  }
}

}  // namespace
}  // namespace strata
