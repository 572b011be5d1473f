#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <sstream>
#include <string>
#include <vector>

#include "strata/base/size.h"
#include "strata/strategy/bfc/reports/memory_log.h"
#include "strata/strategy/bfc/reports/snapshot.h"
#include "strata/tests/strategy/bfc/reports/bfc_snapshot_builder.h"

namespace strata {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

std::vector<std::string> Lines(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

// Two regions of 16 KiB together, with a limit of 64 KiB.
BfcSnapshotBuilder Example() {
  BfcSnapshotBuilder builder;
  builder.Limit(65536)
      .Region()
      .InUse(100, 256, "train{step=3} / MatMul")
      .Free(512)
      .InUse(300, 512, "train{step=3} / Conv")
      .InUse(1000, 1024, "train{step=3} / MatMul")
      .Free(5888)
      .Region()
      .InUse(4096, 4096)
      .Free(4096);
  builder.snapshot().growth_hint_bytes = 16384;
  return builder;
}

// tf_bfc R50: eight lines, these labels, values in 20 columns.
TEST(BfcMemoryLogTest, R50DebugStringHasEightLabelledLines) {
  BfcSnapshot::Numbers numbers;
  numbers.bytes_limit = Gibibytes(2);
  numbers.bytes_in_use = 512;
  numbers.peak_bytes_in_use = Kibibytes(3);
  numbers.num_allocs = 42;
  numbers.largest_alloc_size = Mebibytes(1);
  numbers.largest_free_block_bytes = Kibibytes(7);
  EXPECT_EQ(DebugString(numbers),
            "Limit:                         2.0 GiB\n"
            "InUse:                           512 B\n"
            "MaxInUse:                      3.0 KiB\n"
            "NumAllocs:                          42\n"
            "MaxAllocSize:                  1.0 MiB\n"
            "Reserved:                          0 B\n"
            "PeakReserved:                      0 B\n"
            "LargestFreeBlock:              7.0 KiB\n");
}

// tf_bfc R53: all 21 bins, by the size of the chunk, free or in use.
TEST(BfcMemoryLogTest, R53SummarizesAllBins) {
  BfcSnapshotBuilder builder;
  builder.Region()
      .InUse(1, 256)
      .Free(256)
      .Free(768)
      .InUse(1025, 1280)
      .Free(Mebibytes(256))
      .InUse(Gibibytes(3), Gibibytes(3));
  const BfcBinSummaries bins = SummarizeBins(builder.snapshot());
  EXPECT_EQ(bins[0].chunks, 2U);
  EXPECT_EQ(bins[0].chunks_in_use, 1U);
  EXPECT_EQ(bins[0].bytes, 512U);
  EXPECT_EQ(bins[0].bytes_in_use, 256U);
  EXPECT_EQ(bins[0].requested_bytes_in_use, 1U);
  EXPECT_EQ(bins[1].bytes, 768U);
  EXPECT_EQ(bins[2].requested_bytes_in_use, 1025U);
  EXPECT_EQ(bins[3].chunks, 0U);
  EXPECT_EQ(bins[20].chunks, 2U);
  EXPECT_EQ(bins[20].bytes, Gibibytes(3) + Mebibytes(256));

  const auto lines = Lines(MemoryLog(builder.snapshot(), 256));
  EXPECT_EQ(std::count_if(lines.begin(), lines.end(),
                          [](const std::string& line) {
                            return line.rfind("bin ", 0) == 0;
                          }),
            21);
  EXPECT_THAT(lines, Contains("bin 256 B: 2 chunks, 1 in use; 512 B, 256 B in "
                              "use, asked for 1 B"));
  EXPECT_THAT(lines, Contains(StartsWith("bin 256.0 MiB: 2 chunks, 1 in use")));
}

TEST(BfcMemoryLogTest, R53SaysWhatTheRequestMet) {
  const auto lines = Lines(MemoryLog(Example().snapshot(), 8192));
  EXPECT_EQ(lines.at(0),
            "bfc on device:0: memory log for a request of 8.0 KiB (8192)");
  EXPECT_EQ(lines.at(1),
            "free: 10.2 KiB (10496) in 3 chunks, the largest 5.8 KiB (5888); "
            "fragmentation 0.439024");
  EXPECT_EQ(lines.at(2),
            "regions: 16.0 KiB (16384) of 64.0 KiB (65536) allowed, 48.0 KiB "
            "(49152) not yet taken; the next region would have 16.0 KiB "
            "(16384)");
  EXPECT_EQ(lines.at(3),
            "the free bytes would do, but no chunk of them is large enough");
}

// A reason in the log must be true.
TEST(BfcMemoryLogTest, R53ReasonsOnlyWhereTheyHold) {
  const BfcSnapshot example = Example().snapshot();
  EXPECT_THAT(MemoryLog(example, 256), Not(HasSubstr("would do")));
  EXPECT_THAT(MemoryLog(example, 20480), Not(HasSubstr("would do")));
  EXPECT_THAT(MemoryLog(example, 65536), Not(HasSubstr("larger than")));
  EXPECT_THAT(MemoryLog(example, 65792),
              HasSubstr("the request is larger than the limit"));
}

// tf_bfc §5.9: top sizes, top owners.
TEST(BfcMemoryLogTest, R53GroupsWhatIsInUseBySizeAndOwner) {
  const auto lines = Lines(MemoryLog(Example().snapshot(), 8192));
  EXPECT_THAT(lines,
              Contains("sizes in use, largest 4 of 4 (in all 4 chunks, 5.8 KiB "
                       "(5888), asked for 5.4 KiB (5496)):"));
  EXPECT_THAT(lines, Contains("  4.0 KiB (4096): 1 chunk, 4.0 KiB (4096)"));
  EXPECT_THAT(lines, Contains("  (no annotation): 1 chunk, 4.0 KiB (4096)"));
  EXPECT_THAT(lines, Contains("  train{step=3} / MatMul: 2 chunks, 1.2 KiB "
                              "(1280)"));
  EXPECT_THAT(
      MemoryLog(BfcSnapshotBuilder().Region().InUse(1, 256).snapshot(), 256),
      Not(HasSubstr("owners")));
}

TEST(BfcMemoryLogTest, R53LongerLogsHaveEveryChunkWithItsNeighbours) {
  BfcSnapshotBuilder example = Example();
  example.last().freed_at_count = 9;
  example.snapshot().has_timing_counter = true;
  example.snapshot().chunks[0].step_id = 3;
  const auto lines = Lines(MemoryLog(example.snapshot(), 4096, 1000));
  EXPECT_THAT(lines, Contains("Bin for 4.0 KiB (4096) was 4.0 KiB, its free "
                              "chunks:"));
  EXPECT_THAT(lines, Contains("  Free  at 0x1010900 of size 5888 action 5 "
                              "freed_at_count 0, before it: in use, 1024"));
  EXPECT_THAT(lines, Contains("  Free  at 0x1023000 of size 4096 action 7 "
                              "freed_at_count 9, before it: in use, 4096"));
  EXPECT_THAT(lines, Contains("Next region of size 8192").Times(2));
  EXPECT_THAT(lines,
              Contains("  InUse at 0x1010000 of size 256, asked for 100 by "
                       "train{step=3} / MatMul step 3 action 1"));
  EXPECT_THAT(lines.back(), StartsWith("  Free  at"));
}

TEST(BfcMemoryLogTest, TellsWhatIsFreedButNotYetReusable) {
  BfcSnapshotBuilder example = Example();
  example.snapshot().chunks[0].deferred = true;
  const auto lines = Lines(MemoryLog(example.snapshot(), 4096, 1000));
  EXPECT_THAT(lines, Contains(StartsWith(
                         "  InUse at 0x1010000 of size 256, asked for 100, "
                         "freed but not yet reusable by train")));
}

// tf_bfc W11: the log is bounded for every pool.
TEST(BfcMemoryLogTest, W11NeverHasMoreLinesThanAllowed) {
  BfcSnapshotBuilder builder;
  builder.Limit(Gibibytes(1));
  for (std::size_t region = 0; region < 10; ++region) {
    builder.Region();
    for (std::size_t i = 0; i < 500; ++i) {
      const std::size_t size = 256 * (i + 1);
      builder.InUse(size, size, "owner\n" + std::to_string(i)).Free(size);
    }
  }
  const BfcSnapshot& snapshot = builder.snapshot();
  const auto summary = Lines(MemoryLog(snapshot, 4096));
  EXPECT_EQ(summary.size(), kMemoryLogLines);
  // The line of the bin and one of its 160 free chunks are shown; the other
  // chunks, and the ten regions with their chunks, are not.
  EXPECT_EQ(summary.back(),
            "and 10169 lines more; a memory map has every chunk");
  for (const std::size_t most : {0U, 1U, 2U, 39U, 41U, 500U}) {
    EXPECT_LE(Lines(MemoryLog(snapshot, 4096, most)).size(), most);
  }
  EXPECT_EQ(Lines(MemoryLog(snapshot, 4096, 500)).size(), 500U);
}

// The whole summary fits, for any number of sizes and owners.
TEST(BfcMemoryLogTest, W11TheSummaryIsWholeInItsFortyLines) {
  BfcSnapshotBuilder builder;
  builder.Limit(256).Region();  // so that the log includes a reason
  for (std::size_t i = 0; i < 50; ++i) {
    builder.InUse(1, 256 * (i + 1), "owner " + std::to_string(i)).Free(256);
  }
  const std::string log = MemoryLog(builder.snapshot(), 512);
  EXPECT_THAT(log, HasSubstr("the request is larger than the limit"));
  EXPECT_THAT(log, HasSubstr("bin 256.0 MiB: 0 chunks"));
  EXPECT_THAT(log, HasSubstr("LargestFreeBlock"));
  EXPECT_EQ(Lines(log).size(), kMemoryLogLines);
  // The largest sums are shown.
  EXPECT_THAT(log, HasSubstr("  12.5 KiB (12800): 1 chunk"));
  EXPECT_THAT(log, HasSubstr("  owner 49: 1 chunk, 12.5 KiB (12800)\n"));
  EXPECT_THAT(log, Not(HasSubstr("  owner 0:")));
}

TEST(BfcMemoryLogTest, AnEmptyPoolHasALogToo) {
  const std::string log = MemoryLog(BfcSnapshot(), 256);
  EXPECT_THAT(log, HasSubstr("<allocator contains no memory>"));
  EXPECT_THAT(log, HasSubstr("free: 0 B (0) in 0 chunks"));
}

std::size_t CountOf(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos;
       at = text.find(part, at + 1)) {
    ++count;
  }
  return count;
}

// tf_bfc R44: at most ten logs of failures.
TEST(BfcMemoryLogTest, R44SinkLogsTheRequestOfTheFirstTenSnapshots) {
  BfcSnapshot example = Example().snapshot();
  example.refused_bytes = 8192;
  const auto sink = MakeMemoryLogSink(4);
  ::testing::internal::CaptureStderr();
  for (int i = 0; i < kMostMemoryLogs + 3; ++i) sink(example);
  const std::string log = ::testing::internal::GetCapturedStderr();
  EXPECT_EQ(CountOf(log, "memory log for a request of 8.0 KiB"), 10U);
  EXPECT_EQ(CountOf(log, "more; a memory map has every chunk"), 10U);
}

TEST(BfcMemoryLogTest, LongAnnotationsAreCut) {
  BfcSnapshotBuilder builder;
  builder.Region().InUse(1, 256, std::string(100000, 'a')).InUse(1, 256, "b");
  EXPECT_LT(MemoryLog(builder.snapshot(), 256, 200).size(), 10000U);
}

}  // namespace
}  // namespace strata
