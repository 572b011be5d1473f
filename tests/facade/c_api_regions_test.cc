// A pointer is looked for where its region says: so what a hit hands out must
// be in a region that knows its stream, wherever the block was cached.

#include <gtest/gtest.h>

#include <cstdint>

#include "strata/tests/facade/c_api_fixture.h"

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
};

// The user had an aligned pointer into the region above; what is cached, and
// handed out next, begins below.
TEST_F(CApiRegionsTest, ABlockThatWasAlignedBeginsInAnotherRegion) {
  Create("strata_sim_memory=64MiB,auto_growth_chunk_size_in_mb=8");
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

}  // namespace
}  // namespace strata
