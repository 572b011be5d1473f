#ifndef STRATA_TESTS_STRATEGY_CUDA_MALLOC_ASYNC_CUDA_MALLOC_ASYNC_CACHE_FIXTURE_H_
#define STRATA_TESTS_STRATEGY_CUDA_MALLOC_ASYNC_CUDA_MALLOC_ASYNC_CACHE_FIXTURE_H_

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "strata/strategy/cuda_malloc_async/cuda_malloc_async_allocator.h"
#include "strata/tests/strategy/cuda_malloc_async/cuda_malloc_async_fixture.h"

namespace strata {

// Chains with a cache of freed blocks, and the content of the cache.
class CudaMallocAsyncCacheFixture : public CudaMallocAsyncFixture {
 protected:
  CudaMallocAsyncCacheFixture() { setting_.knows_captures = true; }

  // `count` live blocks of a size that the cache admits from now on.
  static std::vector<AllocationPtr> Admit(const Chain& chain, std::size_t bytes,
                                          std::size_t count = 2) {
    std::vector<AllocationPtr> blocks;
    while (blocks.size() < count) blocks.push_back(chain->Allocate(bytes));
    return blocks;
  }
  // Caches one block of `bytes`, the only one of the chain. Returns its
  // address.
  void* KeepOne(const Chain& chain, std::size_t bytes) {
    std::vector<AllocationPtr> blocks = Admit(chain, bytes);
    void* const kept = blocks.back()->data();
    blocks.pop_back();
    const Request held{bytes, 0, kNoGrowth};
    Failure failure;
    AllocationPtr hit = chain->AllocateOrNull(held, failure);
    EXPECT_EQ(hit != nullptr ? hit->data() : nullptr, kept);
    // A block with a mark is not cached.
    FreeMarked(std::move(blocks.back()), marker_);
    hit.reset();
    EXPECT_EQ(KeptIn(chain), bytes);
    return kept;
  }
  static std::size_t KeptIn(const Chain& chain) {
    const auto& strategy =
        static_cast<const CudaMallocAsyncAllocator&>(*chain.strategy);
    EXPECT_TRUE(strategy.IsConsistent());
    return strategy.kept_bytes();
  }
  void Fail(DeviceCall call, std::uint64_t nth = 0) {
    FaultRule fault;
    fault.call = call;
    fault.nth = nth;
    device().AddFault(fault);
  }
  CaptureGate& gate() { return timelines_->gate(); }
  Chain Start() {
    Build();
    marker_ = NewStream();
    return NewChain();
  }
  // Announces and begins a capture of the chain's stream.
  void BeginCapture(const Chain& chain,
                    CaptureMode mode = CaptureMode::kRelaxed) {
    gate().Announce();
    EXPECT_EQ(device().StreamBeginCapture(chain.stream(), mode),
              Status::kSuccess);
  }
  void EndCapture(const Chain& chain) {
    Graph graph;
    EXPECT_EQ(device().StreamEndCapture(chain.stream(), &graph),
              Status::kSuccess);
    EXPECT_EQ(device().GraphDestroy(graph), Status::kSuccess);
    gate().Withdraw();
  }

  Stream marker_;
};

}  // namespace strata

#endif  // STRATA_TESTS_STRATEGY_CUDA_MALLOC_ASYNC_CUDA_MALLOC_ASYNC_CACHE_FIXTURE_H_
