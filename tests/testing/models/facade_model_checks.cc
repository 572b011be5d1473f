// The checks of a FacadeModel, and its end.

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "strata/base/size.h"
#include "strata/facade/options.h"
#include "strata/tests/testing/layers/block_counter.h"
#include "strata/tests/testing/models/facade_model.h"

namespace strata {

void FacadeModel::ExpectExhausted(Place place, const Request& request,
                                  const Failure& failure) {
  const std::string text = failure.ToString() + "; " + Where();
  const bool absurd = request.bytes >= kAbsurdBytes;
  const std::size_t bytes =
      absurd ? request.bytes : request.bytes + request.alignment;
  const bool tried_all = (request.flags & kNoRetry) == 0;
  switch (failure.reason) {
    case Failure::Reason::kTooLarge:
    case Failure::Reason::kHostMemory:
      EXPECT_TRUE(absurd || options_.has_faults) << text;
      return;
    case Failure::Reason::kNoGrowth:
      EXPECT_NE(request.flags & kNoGrowth, 0U) << text;
      return;
    case Failure::Reason::kBudget:
      EXPECT_GT(request.bytes,
                facade_->options().decorators.in_use_limit_bytes -
                    sums_[place].requested_bytes)
          << text;
      return;
    case Failure::Reason::kLimit:
      if (absurd || !tried_all) return;
      EXPECT_GT(AlignUp(bytes, kNaturalAlignment),
                Mebibytes(facade_->options().gpu_memory_limit_mb) -
                    facade_->GetStats(place).reserved_bytes)
          << text;
      return;
    case Failure::Reason::kDeviceMemory: {
      if (absurd || !tried_all || options_.has_faults) return;
      std::size_t free_bytes = 0;
      std::size_t total_bytes = 0;
      EXPECT_EQ(
          platform_->device(place.index).MemGetInfo(&free_bytes, &total_bytes),
          Status::kSuccess);
      // The zone before a guarded block is a multiple of its alignment.
      const std::size_t zone_bytes =
          facade_->options().decorators.guard ? request.alignment : 0;
      // The strategy requests a power of two.
      const bool is_pow2 = facade_->options().strategy.pool_rounder == "pow2";
      EXPECT_GT(AlignUp(is_pow2 ? std::bit_ceil(bytes) : bytes + zone_bytes,
                        sim::kFrameBytes),
                free_bytes)
          << text;
      return;
    }
    case Failure::Reason::kDevice:
      EXPECT_TRUE(options_.has_faults) << text;
      return;
    default:
      ADD_FAILURE() << "refused for no reason: " << text;
  }
}

void FacadeModel::Check() {
  for (const Place place : facade_->places()) CheckPlace(place);
  if (options_.has_faults) return;
  for (int device = 0; device < kDevices; ++device) CheckDevice(device);
}

void FacadeModel::CheckPlace(Place place) {
  const Stats stats = facade_->GetStats(place);
  const PlaceSums& sums = sums_[place];
  const auto where = [&] { return ToString(place) + "; " + Where(); };
  EXPECT_EQ(stats.allocations, sums.allocations) << where();
  EXPECT_EQ(stats.live_allocations(), sums.live) << where();
  EXPECT_EQ(stats.requested_bytes, sums.requested_bytes) << where();
  EXPECT_EQ(stats.in_use_bytes, sums.in_use_bytes) << where();
  EXPECT_GE(stats.reserved_bytes, sums.in_use_bytes) << where();
  const Options& options = facade_->options();
  EXPECT_GE(stats.peak_in_use_bytes, sums.peak_in_use_bytes) << where();
  // If the fill of a block failed, the block was briefly in use too.
  if (!options_.has_faults || options.alloc_fill_value < 0) {
    if (!stats.peak_in_use_is_bound) {
      EXPECT_EQ(stats.peak_in_use_bytes, sums.peak_in_use_bytes) << where();
    }
    if (options.decorators.exact_peak) {
      EXPECT_FALSE(stats.peak_in_use_is_bound) << where();
    }
    EXPECT_LE(facade_->LargestStreamPeak(place), sums.peak_in_use_bytes)
        << where();
  }
  if (options.decorators.in_use_limit_bytes != 0) {
    EXPECT_LE(stats.requested_bytes, options.decorators.in_use_limit_bytes)
        << where();
  }
  if (options.gpu_memory_limit_mb != 0 && place.kind == PlaceKind::kDevice) {
    EXPECT_LE(stats.reserved_bytes, Mebibytes(options.gpu_memory_limit_mb))
        << where();
  }
}

void FacadeModel::CheckBlocks(Place place) {
  BlockCounter counter;
  facade_->AcceptAll(place, counter);
  if (!counter.has_blocks) return;
  const PlaceSums& sums = sums_[place];
  if (facade_->options().decorators.guard) {
    // For the strategy, blocks in quarantine and red zones are live too.
    EXPECT_GE(counter.live, sums.live) << Where();
    EXPECT_GE(counter.live_bytes, sums.in_use_bytes) << Where();
  } else {
    EXPECT_EQ(counter.live, sums.live) << Where();
    EXPECT_EQ(counter.live_bytes, sums.in_use_bytes) << Where();
  }
  EXPECT_EQ(counter.bytes, facade_->GetStats(place).reserved_bytes) << Where();
}

void FacadeModel::Release() {
  const Place place = AnyPlace();
  BlockCounter counter;
  facade_->AcceptAll(place, counter);
  const std::uint64_t before = facade_->GetStats(place).reserved_bytes;
  const std::size_t given = OneIn(2)
                                ? facade_->Release(place)
                                : facade_->Release(place, StreamFor(place));
  const std::uint64_t after = facade_->GetStats(place).reserved_bytes;
  if (counter.has_blocks && counter.deferred == 0 &&
      !facade_->options().decorators.guard) {
    EXPECT_EQ(after, before - given) << Where();
  } else {
    // Deferred or quarantined blocks may be released to the system when they
    // are freed.
    EXPECT_LE(after, before - given) << Where();
  }
}

void FacadeModel::CheckDevice(int device) {
  std::size_t free_bytes = 0;
  std::size_t total_bytes = 0;
  ASSERT_EQ(platform_->device(device).MemGetInfo(&free_bytes, &total_bytes),
            Status::kSuccess);
  const Stats stats = facade_->GetStats(DevicePlace(device));
  EXPECT_GE(total_bytes - free_bytes, stats.reserved_bytes) << Where();
  EXPECT_LE(total_bytes - free_bytes,
            stats.reserved_bytes + stats.chunks * sim::kFrameBytes)
      << Where();
}

void FacadeModel::FreeEverything() {
  while (!live_.empty()) Free(live_.size() - 1, false);
  Check();
  for (const Place place : facade_->places()) {
    facade_->Release(place);
    const Stats stats = facade_->GetStats(place);
    EXPECT_EQ(stats.reserved_bytes, 0U) << ToString(place) << "; " << Where();
    EXPECT_EQ(stats.chunks, 0U) << ToString(place) << "; " << Where();
    BlockCounter counter;
    facade_->AcceptAll(place, counter);
    EXPECT_EQ(counter.bytes, 0U) << ToString(place) << "; " << Where();
  }
  EXPECT_EQ(ranges_.count(), 0U) << Where();
}

void FacadeModel::ExpectUsable() {
  const Options& facade = facade_->options();
  Request half{options_.device_memory_bytes / 2};
  for (const std::size_t limit : {Mebibytes(facade.gpu_memory_limit_mb),
                                  facade.decorators.in_use_limit_bytes}) {
    if (limit != 0) half.bytes = std::min(half.bytes, limit / 2);
  }
  for (int device = 0; device < kDevices; ++device) {
    const Place place = DevicePlace(device);
    for (const Stream stream : streams_[static_cast<std::size_t>(device)]) {
      Failure failure;
      AllocationPtr made = facade_->TryAlloc(place, half, stream, failure);
      ASSERT_NE(made, nullptr) << failure.ToString() << "; " << Where();
      Note(std::move(made), place, half, stream);
      Free(live_.size() - 1, false);
      Check();
    }
  }
}

void FacadeModel::Finish(std::uint64_t lost_events) {
  facade_.reset();
  std::size_t allocations = 0;
  std::uint64_t events = 0;
  for (int device = 0; device < kDevices; ++device) {
    auto& streams = streams_[static_cast<std::size_t>(device)];
    for (std::size_t i = 0; i < kStreams; ++i) {
      EXPECT_EQ(platform_->device(device).StreamDestroy(streams[i]),
                Status::kSuccess);
    }
    const SimLeaks leaks = platform_->sim_device(device).Leaks();
    allocations +=
        leaks.allocations + leaks.pinned_ranges + leaks.managed_ranges;
    events += leaks.events;
    EXPECT_EQ(leaks.streams, 0U) << Where();
  }
  EXPECT_EQ(allocations, 0U) << platform_->LeakReport() << Where();
  EXPECT_EQ(events, lost_events) << platform_->LeakReport() << Where();
}

}  // namespace strata
