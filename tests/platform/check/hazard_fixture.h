#ifndef STRATA_TESTS_PLATFORM_CHECK_HAZARD_FIXTURE_H_
#define STRATA_TESTS_PLATFORM_CHECK_HAZARD_FIXTURE_H_

#include <gtest/gtest.h>

#include <cstdint>

#include "strata/tests/testing/models/record_script.h"

namespace strata::check {

// A program of two streams over one piece of memory, as the records of its
// calls.
class HazardFixture : public testing::Test {
 protected:
  static constexpr std::uint64_t kChunk = 0x100000;  // the memory
  static constexpr std::uint64_t kBlock = 0x1000;    // bytes of a block
  static constexpr std::uint64_t kPinned = 0x700000;
  static constexpr std::uint64_t kPool = 0x800000;  // memory of a pool
  static constexpr std::uint64_t kEvent = 0xe1;
  static constexpr std::uint64_t kOther = 0xe2;
  static constexpr std::uint64_t kA = 3;  // streams
  static constexpr std::uint64_t kB = 7;
  static constexpr std::uint64_t kGraph = 0x61;
  static constexpr std::uint64_t kExec = 0x62;

  HazardFixture() {
    run_.CreateStream(kA);
    run_.CreateStream(kB);
    run_.MemAlloc(kChunk, 1 << 20);
  }

  // Allocates a block, written by stream A.
  void WriteOnA() { run_.AllocWrite(kChunk, kBlock, kA); }
  // Likewise, and frees the block behind it.
  void UseOnA() { run_.AllocWriteFree(kChunk, kBlock, kA); }
  // Allocates the memory on stream B, and writes it there.
  void ReuseOnB() { run_.AllocWrite(kChunk, kBlock, kB); }

  // B takes part in the capture of A, until Join.
  void Fork() { run_.Order(kEvent, kA, kB); }
  void Join() { run_.Order(kOther, kB, kA); }
  void EndAndInstantiate(std::uint64_t graph = kGraph,
                         std::uint64_t exec = kExec) {
    run_.End(kA, graph);
    run_.Instantiate(exec, graph);
  }
  // Captures a graph that uses one private block at `ptr`.
  void CapturePrivate(std::uint64_t ptr, std::uint64_t graph,
                      std::uint64_t exec) {
    run_.Begin(kA);
    run_.AllocWriteFree(ptr, kBlock, kA);
    EndAndInstantiate(graph, exec);
  }

  RecordScript run_;
};

}  // namespace strata::check

#endif  // STRATA_TESTS_PLATFORM_CHECK_HAZARD_FIXTURE_H_
