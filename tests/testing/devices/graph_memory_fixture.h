#ifndef STRATA_TESTS_TESTING_DEVICES_GRAPH_MEMORY_FIXTURE_H_
#define STRATA_TESTS_TESTING_DEVICES_GRAPH_MEMORY_FIXTURE_H_

#include <cstddef>
#include <cstdint>

#include "strata/tests/testing/devices/capture_fixture.h"

namespace strata {

// A test of memory that graphs own. Skips on devices where graphs own none.
class GraphMemoryFixture : public CaptureFixture {
 protected:
  void SetUp() override {
    CaptureFixture::SetUp();
    if (IsSkipped()) return;
    if (!device().caps().graph_mem_nodes || !device().caps().mem_pools) {
      GTEST_SKIP() << "no memory of graphs";
    }
    EXPECT_EQ(device().DefaultMemPool(&pool_), Status::kSuccess);
    stream_ = NewStream();
    // The driver keeps graph memory of earlier tests.
    EXPECT_EQ(device().GraphMemTrim(), Status::kSuccess);
  }

  // Allocates in a capturing stream: adds an allocation node.
  DevicePtr Take(const Stream& from, std::size_t bytes = kBlockBytes) {
    DevicePtr ptr = 0;
    EXPECT_EQ(device().MallocFromPoolAsync(&ptr, bytes, pool_, from),
              Status::kSuccess);
    EXPECT_NE(ptr, 0u);
    return ptr;
  }

  void Give(DevicePtr ptr, const Stream& to) {
    EXPECT_EQ(device().FreeAsync(ptr, to), Status::kSuccess);
  }

  // A graph that allocates and writes kFirst, without a free.
  Graph Escaping(DevicePtr* ptr) {
    return Capture(stream_, [&] {
      *ptr = Take(stream_);
      Write(*ptr, kBlockBytes, kFirst, stream_);
    });
  }

  // A graph that allocates, writes and frees `bytes`.
  Graph Closed(std::size_t bytes) {
    return Capture(stream_, [&] {
      const DevicePtr ptr = Take(stream_, bytes);
      Write(ptr, kBlockBytes, kFirst, stream_);
      Give(ptr, stream_);
    });
  }

  std::uint64_t Get(GraphMemAttributeKind kind) {
    std::uint64_t value = 0;
    EXPECT_EQ(device().GraphMemAttribute(kind, &value), Status::kSuccess);
    return value;
  }

  MemPool pool_;  // properties of the memory
  Stream stream_;
};

}  // namespace strata

#endif  // STRATA_TESTS_TESTING_DEVICES_GRAPH_MEMORY_FIXTURE_H_
