// A pointer is searched in the region of its address. So a pointer from a hit
// must lie in a region that knows its stream, wherever the block was cached.

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "strata/facade/c_api_call.h"
#include "strata/tests/facade/c_api_fixture.h"
#include "strata/tests/testing/heap_call_counter.h"

namespace strata {
namespace {

class CApiRegionsTest : public CApiTest {
 protected:
  void* AllocAligned(std::size_t bytes, std::size_t alignment) {
    void* pointer = nullptr;
    EXPECT_EQ(strata_alloc_aligned(facade_, kDevice, bytes, alignment, nullptr,
                                   &pointer),
              STRATA_OK)
        << strata_last_error();
    return pointer;
  }
  void Free(void* pointer) {
    EXPECT_EQ(strata_free(facade_, pointer), STRATA_OK) << strata_last_error();
  }
  // Raises the peak without a known pointer. Later hits then reach no new peak;
  // with a new peak they would look at the region.
  void RaisePeak() { facade_->facade.Alloc(DevicePlace(0), 6 * kMebibyte); }
  static std::uintptr_t RegionOf(const void* pointer) {
    return reinterpret_cast<std::uintptr_t>(pointer) / (2 * kMebibyte);
  }
};

// The user had an aligned pointer into the upper region. The cached block,
// which is allocated next, begins in the lower region.
TEST_F(CApiRegionsTest, ABlockThatWasAlignedBeginsInAnotherRegion) {
  Create(
      "strata_sim_memory=64MiB,auto_growth_chunk_size_in_mb=8,"
      "strata_stream_lock=word");
  RaisePeak();
  void* const top = Alloc(2 * kMebibyte - 8192);  // from the end of the chunk
  const auto border = reinterpret_cast<std::uintptr_t>(top) - 8192;
  ASSERT_EQ(border % (2 * kMebibyte), 0U);
  for (int i = 0; i < 2; ++i) {
    void* const aligned = AllocAligned(8192, 16384);
    ASSERT_EQ(reinterpret_cast<std::uintptr_t>(aligned), border);
    Free(aligned);
  }
  void* const below = Alloc(24320);
  ASSERT_LT(reinterpret_cast<std::uintptr_t>(below), border);
  Free(below);
  Free(top);
}

// A block that was freed because its pointer could not be recorded is cached
// like any other.
TEST_F(CApiRegionsTest, ABlockWhoseFirstUserGotNoneIsFoundLater) {
  if (!HeapFailure::is_possible()) GTEST_SKIP() << "a sanitizer has the heap";
  Create(
      "strata_sim_memory=64MiB,auto_growth_chunk_size_in_mb=8,"
      "strata_stream_lock=word");
  RaisePeak();
  // Creates a chunk and records, but no known pointer.
  const AllocationPtr first = facade_->facade.Alloc(DevicePlace(0), 512);
  for (int i = 0; i < 3; ++i) {
    void* pointer = nullptr;
    strata_status status = STRATA_OK;
    {
      const HeapFailure failure;
      status = strata_alloc(facade_, kDevice, 4096, nullptr, &pointer);
    }
    ASSERT_EQ(status, STRATA_OUT_OF_MEMORY);
  }
  void* const other = Alloc(3 * kMebibyte);
  void* const kept = Alloc(4096);
  EXPECT_NE(RegionOf(other), RegionOf(kept));
  Free(kept);
  Free(other);
}

// A group that the stream shared knew its pointers, and its blocks outlive that
// group.
TEST_F(CApiRegionsTest, AStreamThatGetsAGroupOfItsOwnKeepsItsBlocks) {
  // These, and the default stream of the other device, use all groups.
  constexpr std::size_t kStreams = 253;
  Create(
      "strata_sim_devices=2,auto_growth_chunk_size_in_mb=8,"
      "strata_stream_lock=word");
  const strata_place elsewhere = {STRATA_DEVICE, 1};
  std::vector<void*> streams;
  // The regions of the others must differ from those of the first device.
  std::vector<void*> pointers = {Alloc(64 * kMebibyte, nullptr, elsewhere)};
  for (std::size_t i = 1; i < kStreams; ++i) {
    streams.push_back(NewStream(1));
    pointers.push_back(Alloc(512, streams.back(), elsewhere));
  }
  RaisePeak();
  void* const first = Alloc(512);
  for (int i = 0; i < 3; ++i) Free(Alloc(4096));
  Free(pointers.back());
  ASSERT_EQ(strata_stream_destroy(facade_, 1, streams.back()), STRATA_OK);
  pointers.pop_back();
  void* const other = Alloc(3 * kMebibyte);
  void* const kept = Alloc(4096);
  EXPECT_NE(RegionOf(other), RegionOf(kept));
  Free(kept);
  Free(other);
  Free(first);
  for (void* pointer : pointers) Free(pointer);
}

}  // namespace
}  // namespace strata
