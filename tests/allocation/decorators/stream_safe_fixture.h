#ifndef STRATA_TESTS_ALLOCATION_DECORATORS_STREAM_SAFE_FIXTURE_H_
#define STRATA_TESTS_ALLOCATION_DECORATORS_STREAM_SAFE_FIXTURE_H_

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>

#include "strata/allocation/chunks/chunk_pool.h"
#include "strata/allocation/decorator.h"
#include "strata/allocation/decorators/stream_safe_allocator.h"
#include "strata/allocation/streams/chain_stream.h"
#include "strata/base/size.h"
#include "strata/tests/testing/layers/pool_place.h"
#include "strata/tests/testing/layers/shelf_allocator.h"

namespace strata {

// Chains of one place with work that runs on request of the test.
class StreamSafeFixture : public ::testing::Test {
 protected:
  // So small that its free does not record an event itself.
  static constexpr std::size_t kBytes = 4096;

  struct Chain {
    std::shared_ptr<ChainStream> stream;
    std::shared_ptr<Allocator> strategy;
    std::shared_ptr<StreamSafeAllocator> layer;
  };

  static PoolPlaceOptions Manual(bool cross_stream_wait = false) {
    PoolPlaceOptions options;
    options.progress = "manual";
    options.memory_bytes = Gibibytes(1);
    options.cross_stream_wait = cross_stream_wait;
    return options;
  }

  explicit StreamSafeFixture(bool cross_stream_wait = false)
      : place_(Manual(cross_stream_wait)) {
    EXPECT_EQ(device().MemAlloc(&scratch_, 4096), Status::kSuccess);
  }
  ~StreamSafeFixture() override {
    chain_ = Chain();
    place_.frees()->Close();
    EXPECT_EQ(place_.pool()->stats().in_use_bytes, 0U);
    place_.pool()->Release();
    EXPECT_EQ(place_.pool()->reserved_bytes(), 0U);
  }

  SimDevice& device() { return place_.device(); }
  StreamSafeAllocator& layer() { return *chain_.layer; }
  Stream own() const { return chain_.stream->stream(); }
  std::uint64_t Count(DeviceCall call) { return device().CallCount(call); }
  // Number of waits of the host.
  std::uint64_t Waits() {
    return Count(DeviceCall::kStreamSynchronize) +
           Count(DeviceCall::kEventSynchronize) +
           Count(DeviceCall::kSynchronize);
  }

  Chain NewChain() {
    Chain chain;
    chain.stream = place_.NewChainStream();
    chain.strategy = std::make_shared<ShelfAllocator>(place_.pool());
    chain.layer = std::make_shared<StreamSafeAllocator>(
        chain.strategy, place_.frees(), chain.stream);
    return chain;
  }
  AllocationPtr Marked(std::initializer_list<Stream> streams) {
    AllocationPtr allocation = layer().Allocate(kBytes);
    for (const Stream stream : streams) {
      EXPECT_TRUE(layer().RecordStream(allocation.get(), stream));
    }
    return allocation;
  }
  // Submits a piece of work.
  void Work(const Stream& stream) {
    EXPECT_EQ(device().MemsetAsync(scratch_, 1, 64, stream), Status::kSuccess);
  }
  void FailAlways(DeviceCall call) {
    FaultRule rule = FailAll(call);
    rule.status = Status::kUnknown;
    device().AddFault(rule);
  }

  PoolPlace place_;
  Stream a_ = place_.NewStream();
  Stream b_ = place_.NewStream();
  DevicePtr scratch_ = 0;
  Chain chain_ = NewChain();
};

}  // namespace strata

#endif  // STRATA_TESTS_ALLOCATION_DECORATORS_STREAM_SAFE_FIXTURE_H_
