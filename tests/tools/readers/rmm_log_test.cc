#include "strata/tools/readers/rmm_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "strata/tests/tools/temp_file.h"
#include "strata/tools/readers/input_buffer.h"

namespace strata::tools {
namespace {

using ::testing::ElementsAre;

Trace ReadText(const std::string& text) {
  const TempFile file;
  file.Write(text);
  return ReadRmmLog(file.path());
}

Trace ReadRows(const std::string& rows) { return ReadText(kHeader + rows); }

// The error of reading `text`, without the path: "3: reason".
std::string RmmError(const std::string& text, bool strict = false) {
  const TempFile file;
  file.Write(text);
  try {
    InputBuffer input(file.path());
    ReadRmmLog(input, strict);
  } catch (const TraceError& error) {
    const std::string what = error.what();
    EXPECT_TRUE(what.starts_with(file.path() + ":")) << what;
    EXPECT_EQ(what.find('\n'), std::string::npos) << what;
    return what.substr(file.path().size() + 1);
  }
  return "";
}

constexpr char kAllocate10[] = "1,00:00:00.000001,allocate,0x10,100,0\n";

TEST(RmmLogTest, ReadsAllocatesAndFreesInOrder) {
  const Trace trace = ReadRows(
      "1,00:00:00.000001,allocate,0x10,100,0\n"
      "1,00:00:00.000002,allocate,0x20,50,0\n"
      "1,00:00:00.000003,free,0x10,100,0\n"
      "1,00:00:00.000004,allocate,0x10,7,0\n");
  EXPECT_THAT(
      trace.events,
      ElementsAre(TraceEvent::Allocate(0, 0), TraceEvent::Allocate(1, 0),
                  TraceEvent::Free(0, 0), TraceEvent::Allocate(0, 0)));
  EXPECT_THAT(trace.allocated_bytes, ElementsAre(100, 50, 7));
  EXPECT_EQ(trace.slots, 2U);
  EXPECT_EQ(trace.peak_live_bytes, 150U);
}

TEST(RmmLogTest, FindsColumnsByName) {
  const Trace trace = ReadText(
      "Size, Extra ,Stream,Pointer,Action,Time,Thread\r\n"
      "8,a b,0,4096,allocate,whenever,1\r\n"
      "8,,0,0x1000,free,,2\r\n");
  EXPECT_THAT(trace.events,
              ElementsAre(TraceEvent::Allocate(0, 0), TraceEvent::Free(0, 0)));
}

TEST(RmmLogTest, SkipsAByteOrderMark) {
  EXPECT_EQ(ReadText("\xef\xbb\xbf" + std::string(kHeader) + kAllocate10)
                .events.size(),
            1U);
}

TEST(RmmLogTest, LegacyStreamsAreOneAndTheOthersAreNumbered) {
  const Trace trace = ReadRows(
      "1,0,allocate,1,1,0\n1,0,allocate,2,1,0x1\n1,0,allocate,3,1,0x2\n"
      "1,0,allocate,4,1,94\n1,0,allocate,5,1,0x5e\n1,0,allocate,6,1,(nil)\n");
  std::vector<std::uint32_t> streams;
  for (const TraceEvent event : trace.events) streams.push_back(event.stream());
  EXPECT_THAT(streams, ElementsAre(0, 0, 1, 2, 2, 0));
  EXPECT_THAT(trace.streams, ElementsAre(0, 2, 94));
}

TEST(RmmLogTest, FailuresAreTriedAgain) {
  const Trace trace = ReadRows(
      "1,0,allocate failure,(nil),100,0\n"
      "1,0,allocate,0x10,30,0\n"
      "1,0,allocate failure,0,80,0x5\n"
      "1,0,free,0x10,30,0\n");
  EXPECT_THAT(trace.events,
              ElementsAre(TraceEvent::Try(0, 0), TraceEvent::Allocate(0, 0),
                          TraceEvent::Try(1, 1), TraceEvent::Free(0, 0)));
  EXPECT_THAT(trace.allocated_bytes, ElementsAre(100, 30, 80));
  EXPECT_EQ(trace.tries, 2U);
  EXPECT_EQ(trace.peak_live_bytes, 110U);
  EXPECT_EQ(trace.LineOf(2), 4U);
}

TEST(RmmLogTest, OfAFailureOnlyTheSizeIsNeeded) {
  const Trace trace = ReadRows(
      "1,0,allocate,0x10,30,0\n"
      "1,0,allocate failure,?,100,?\n"
      "1,0,allocate failure,(nil),?,0\n");
  EXPECT_EQ(trace.tries, 1U);
  EXPECT_EQ(trace.failures_skipped, 1U);
  EXPECT_TRUE(trace.skipped.empty());
}

TEST(RmmLogTest, ReleaseIsAnOperation) {
  const Trace trace = ReadText(
      "Thread,Time,Action,Pointer,Size,Stream,Place\n"
      "1,0,allocate,0x10,100,1,device:0\n"
      "1,0,release,(nil),0,0,host\n"
      "1,0,free,0x10,100,1,device:0\n"
      "1,0,release,?,?,?,device:0\n");
  EXPECT_THAT(trace.events,
              ElementsAre(TraceEvent::Allocate(0, 0), TraceEvent::Free(0, 0),
                          TraceEvent::Release()));
  EXPECT_EQ(trace.releases, 1U);
  EXPECT_EQ(trace.other_place_rows, 1U);
  EXPECT_TRUE(trace.skipped.empty());
}

// Only its pointer matters.
TEST(RmmLogTest, FreeNeedsNoSizeAndNoStream) {
  const Trace trace =
      ReadRows(std::string(kAllocate10) + "1,0,free,0x10,-1,none\n");
  EXPECT_EQ(trace.events.size(), 2U);
  EXPECT_EQ(trace.frees_of_other_size, 0U);
  EXPECT_EQ(trace.frees_of_other_stream, 0U);
  EXPECT_TRUE(trace.skipped.empty());
}

TEST(RmmLogTest, AllIsOnTheDefaultStreamWithoutAColumnStream) {
  const Trace trace = ReadText("Action,Pointer,Size\nallocate,0x10,100\n");
  EXPECT_EQ(trace.events.size(), 1U);
  EXPECT_EQ(trace.skipped.of(SkipKind::kMissingColumn).count, 3U);
  EXPECT_EQ(trace.skipped.of(SkipKind::kMissingColumn).reason,
            "the header lacks the columns Thread, Time, Stream; all is taken "
            "for the default stream");
  EXPECT_FALSE(trace.skipped.IsSuspect());
}

// --- Hexadecimal numbers ---------------------------------------------------

std::string RowsOfPointers(const std::vector<std::string>& pointers) {
  std::string rows;
  for (const std::string& pointer : pointers) {
    const bool is_free = pointer.starts_with('-');
    rows += is_free ? "1,0,free," : "1,0,allocate,";
    rows += pointer.substr(is_free ? 1 : 0) + ",5,0\n";
  }
  return rows;
}

TEST(RmmLogTest, PointersWithLettersAreHexadecimalInTheWholeColumn) {
  // 160 read as decimal equals a0 read as hexadecimal. So one base for the
  // whole column is needed to tell the two addresses apart.
  for (const std::string& rows :
       {RowsOfPointers({"160", "a0", "-160", "-a0"}),
        RowsOfPointers(
            {"00007FF6A000", "0000160000", "-00007ff6a000", "-160000"})}) {
    const Trace trace = ReadRows(rows);
    EXPECT_THAT(
        trace.events,
        ElementsAre(TraceEvent::Allocate(0, 0), TraceEvent::Allocate(1, 0),
                    TraceEvent::Free(0, 0), TraceEvent::Free(1, 0)));
    EXPECT_TRUE(trace.skipped.empty()) << rows;
  }
}

TEST(RmmLogTest, DigitsAreDecimalWhereTheColumnHas0x) {
  const Trace trace = ReadRows(RowsOfPointers({"0xa0", "-160", "b0", "-0xb0"}));
  EXPECT_EQ(trace.events.size(), 4U);
  EXPECT_TRUE(trace.skipped.empty());
}

// Because they have more than 16 digits.
TEST(RmmLogTest, ALetterDoesNotTurnLongDecimalNumbers) {
  const Trace trace = ReadRows(
      RowsOfPointers({"17293822569102704640", "ff", "17293822569102704641",
                      "-17293822569102704640", "-17293822569102704641"}));
  EXPECT_EQ(trace.events.size(), 5U);
  EXPECT_TRUE(trace.skipped.empty());
}

TEST(RmmLogTest, StreamsAreHexadecimalByThemselves) {
  const Trace trace = ReadRows(
      "1,0,allocate,10,1,0\n1,0,allocate,20,1,10\n"
      "1,0,allocate,30,1,5e\n1,0,allocate,40,1,10\n");
  EXPECT_THAT(trace.streams, ElementsAre(0, 0x10, 0x5e));
  EXPECT_EQ(trace.events[3].stream(), 1U);
}

TEST(RmmLogTest, NotesThatTheDefaultStreamHasTwoNames) {
  const auto has_both = [](const std::string& streams) {
    std::string rows = kHeader;
    int pointer = 0;
    for (const char stream : streams) {
      rows +=
          "1,0,allocate," + std::to_string(++pointer) + ",5," + stream + "\n";
    }
    return ReadText(rows).has_both_defaults;
  };
  for (const char* streams : {"01", "10", "2012", "210", "00211"}) {
    EXPECT_TRUE(has_both(streams)) << streams;
  }
  for (const char* streams : {"0", "1", "1112", "2", "020", "21"}) {
    EXPECT_FALSE(has_both(streams)) << streams;
  }
}

TEST(RmmLogTest, CountsFreesOfAnotherSizeAndKeepsTheAllocates) {
  const Trace trace = ReadRows(
      "1,0,allocate,1,100,0\n1,0,free,1,0,0\n"
      "1,0,allocate,2,100,0\n1,0,free,2,99,0\n"
      "1,0,allocate,3,100,0\n1,0,free,3,100,0\n");
  EXPECT_EQ(trace.frees_of_other_size, 2U);
  EXPECT_EQ(trace.peak_live_bytes, 100U);
}

TEST(RmmLogTest, BlocksOfNoBytesMayShareTheNullAddress) {
  const Trace trace = ReadRows(
      "1,0,allocate,(nil),0,0\n1,0,allocate,0x0,0,0\n"
      "1,0,free,0,0,0\n1,0,free,(nil),0,0\n");
  EXPECT_EQ(trace.events.size(), 4U);
  EXPECT_EQ(trace.slots, 2U);
}

TEST(RmmLogTest, BlankLinesAtTheEndAreIgnored) {
  EXPECT_EQ(ReadRows(std::string(kAllocate10) + "\r\n\n\n").events.size(), 1U);
}

TEST(RmmLogTest, KeepsTheRowsOfTheFirstDeviceOfAStrataTrace) {
  const Trace trace = ReadText(
      "Thread,Time,Action,Pointer,Size,Stream,Place\n"
      "1,0,allocate,0x5,10,0,host\n"
      "1,0,allocate,0x10,100,1,device:1\n"
      "1,0,allocate,0x20,100,1,device:0\n"
      "1,0,free,0x10,100,1,device:1\n"
      "1,0,free,0x5,10,0,host\n");
  EXPECT_EQ(trace.events.size(), 2U);
  EXPECT_EQ(trace.other_place_rows, 3U);
  EXPECT_EQ(trace.LineOf(1), 5U);
}

TEST(RmmLogTest, ShowsBinaryDataInOneReadableLine) {
  const std::string error =
      RmmError(std::string(kHeader) + "1,0,\x01\x02" + "free\xff,1,1,0\n",
               /*strict=*/true);
  EXPECT_EQ(error, "2: unknown action '??free?'");
}

struct BadInput {
  const char* name;
  std::string text;
  std::string error;
};

class RmmLogErrorTest : public ::testing::TestWithParam<BadInput> {};

TEST_P(RmmLogErrorTest, StrictReadingNamesLineAndReason) {
  EXPECT_EQ(RmmError(GetParam().text, /*strict=*/true), GetParam().error);
}

std::string Rows(const std::string& rows) { return kHeader + rows; }

INSTANTIATE_TEST_SUITE_P(
    BadInputs, RmmLogErrorTest,
    ::testing::Values(
        BadInput{"EmptyFile", "", " the file is empty"},
        BadInput{"NoRows", kHeader, " no allocate or free"},
        BadInput{"FailuresOnly", Rows("1,0,allocate failure,(nil),x,0\n"),
                 " no allocate or free, only 1 allocate failures"},
        BadInput{"NoDeviceRows",
                 "Thread,Time,Action,Pointer,Size,Stream,Place\n"
                 "1,0,allocate,5,5,0,host\n",
                 " no allocate or free of device memory"},
        BadInput{"MissingColumn", "Thread,Time,Action,Pointer,Stream\n",
                 "1: the header lacks the column Size"},
        BadInput{"SeveralMissingColumns", "Action,Pointer,Size,Stream\n",
                 "1: the header lacks the columns Thread, Time"},
        BadInput{"NoStreams", "Thread,Time,Action,Pointer,Size\n",
                 "1: the header lacks the column Stream; all is taken for the "
                 "default stream"},
        BadInput{
            "NoHeader", kAllocate10,
            "1: no known trace: neither a log of RMM, whose header has the "
            "columns Thread, Time, Action, Pointer, Size, Stream, nor a "
            "log of Umpire, nor a snapshot of PyTorch"},
        BadInput{"NoPlace",
                 "Thread,Time,Action,Pointer,Size,Stream,Place\n"
                 "1,0,allocate,5,5,0,\n",
                 "2: no place"},
        BadInput{"HeaderBetweenRows",
                 "Thread,Time,Action,Pointer,Size,Stream,Place\n"
                 "1,0,allocate,5,5,0,device:0\n"
                 "Thread,Time,Action,Pointer,Size,Stream,Place\n",
                 "3: unknown action 'Action'"},
        BadInput{"ColumnTwice", "Thread,Time,Action,Pointer,Size,Stream,Size\n",
                 "1: the header has 'Size' twice"},
        BadInput{"TooFewColumns", Rows("1,0,free,1,1\n"),
                 "2: the row has 5 columns, the header 6"},
        BadInput{"TooManyColumns", Rows("1,0,free,1,1,0,\n"),
                 "2: the row has more columns than the header"},
        BadInput{"BlankLineBetweenRows",
                 Rows(std::string(kAllocate10) + "\n1,0,free,0x10,100,0\n"),
                 "3: a blank line between rows"},
        BadInput{"NegativeSize", Rows("1,0,allocate,1,-5,0\n"),
                 "2: the size is negative: '-5'"},
        BadInput{"NegativeSizeOfAFree",
                 Rows(std::string(kAllocate10) + "1,0,free,0x10,-1,0\n"),
                 "3: the size is negative: '-1'"},
        BadInput{"OverflowingSize",
                 Rows("1,0,allocate,1,18446744073709551616,0\n"),
                 "2: the size exceeds 64 bits: '18446744073709551616'"},
        BadInput{"LiveBytesOverflow",
                 Rows("1,0,allocate,1,18446744073709551615,0\n"
                      "1,0,allocate,2,1,0\n"),
                 "3: more than 2^64 bytes are live"},
        BadInput{"SizeIsNoNumber", Rows("1,0,allocate,1,12kB,0\n"),
                 "2: no size: '12kB'"},
        BadInput{"NoSize", Rows("1,0,allocate,1,,0\n"), "2: no size: ''"},
        BadInput{"LoneMinus", Rows("1,0,allocate,1,-,0\n"), "2: no size: '-'"},
        BadInput{"UnknownAction", Rows("1,0,realloc,1,1,0\n"),
                 "2: unknown action 'realloc'"},
        BadInput{"ActionInOtherCase", Rows("1,0,Allocate,1,1,0\n"),
                 "2: unknown action 'Allocate'"},
        BadInput{"PointerIsNoNumber", Rows("1,0,allocate,0xzz,1,0\n"),
                 "2: no pointer: '0xzz'"},
        BadInput{"OverflowingPointer",
                 Rows("1,0,allocate,0x10000000000000000,1,0\n"),
                 "2: no pointer: '0x10000000000000000'"},
        BadInput{"StreamIsNoNumber", Rows("1,0,allocate,1,1,main\n"),
                 "2: no stream: 'main'"},
        BadInput{"NullPointerWithBytes", Rows("1,0,allocate,(nil),4,0\n"),
                 "2: allocate of 4 bytes at (nil)"},
        BadInput{"FreeOfUnknownPointer",
                 Rows(std::string(kAllocate10) + "1,0,free,0x11,100,0\n"),
                 "3: free of 0x11, which is not live"},
        BadInput{"FreeOfNull", Rows("1,0,free,0,0,0\n"),
                 "2: free of (nil), which is not live"},
        BadInput{"SecondFree",
                 Rows(std::string(kAllocate10) +
                      "1,0,free,16,100,0\n1,0,free,16,100,0\n"),
                 "4: free of 0x10, which is not live"},
        BadInput{"AllocateOfLivePointer",
                 Rows(std::string(kAllocate10) + kAllocate10),
                 "3: allocate of 0x10, which is live"}),
    [](const ::testing::TestParamInfo<BadInput>& test) {
      return std::string(test.param.name);
    });

// --- Rows that are skipped -------------------------------------------------

struct SkippedRow {
  const char* name;
  SkipKind kind;
  std::string rows;  // the third line of the file is skipped
  std::string reason;
};

class RmmLogSkipTest : public ::testing::TestWithParam<SkippedRow> {};

TEST_P(RmmLogSkipTest, RestIsReadAndTheRowCounted) {
  const SkippedRow& row = GetParam();
  const Trace trace = ReadRows(kAllocate10 + row.rows);
  ASSERT_GE(trace.events.size(), 1U);
  EXPECT_EQ(trace.events[0], TraceEvent::Allocate(0, 0));
  EXPECT_EQ(trace.skipped.of(row.kind).count, 1U);
  EXPECT_EQ(trace.skipped.of(row.kind).line, 3U);
  EXPECT_EQ(trace.skipped.of(row.kind).reason, row.reason);
  EXPECT_EQ(trace.skipped.skipped_rows(), 1U);
  EXPECT_TRUE(trace.skipped.IsSuspect());
}

INSTANTIATE_TEST_SUITE_P(
    Rows, RmmLogSkipTest,
    ::testing::Values(
        SkippedRow{"CutLastRow", SkipKind::kCutRow, "1,0,fre",
                   "the row has 3 columns, the header 6"},
        SkippedRow{"CutBeforeTheLastValue", SkipKind::kCutRow,
                   "1,0,allocate,0x20,64,", "no stream: ''"},
        SkippedRow{"LineOfAnotherLogger", SkipKind::kForeignRow,
                   "WARN spill\n1,0,free,0x10,100,0\n",
                   "the row has 1 columns, the header 6"},
        SkippedRow{"MoreColumns", SkipKind::kForeignRow,
                   "1,0,free,0x10,100,0,7\n",
                   "the row has more columns than the header"},
        SkippedRow{"HeaderOfAnotherLog", SkipKind::kUnknownAction, kHeader,
                   "unknown action 'Action'"},
        SkippedRow{"UnknownAction", SkipKind::kUnknownAction,
                   "1,0,reallocate,0x10,100,0\n",
                   "unknown action 'reallocate'"},
        SkippedRow{"NegativeSize", SkipKind::kBadValue,
                   "1,0,allocate,0x20,-5,0\n", "the size is negative: '-5'"},
        SkippedRow{"NoPointer", SkipKind::kBadValue, "1,0,free,here,5,0\n",
                   "no pointer: 'here'"},
        SkippedRow{"NoStream", SkipKind::kBadValue,
                   "1,0,allocate,0x20,5,main\n", "no stream: 'main'"},
        SkippedRow{"BytesAtNull", SkipKind::kBadValue,
                   "1,0,allocate,(nil),5,0\n", "allocate of 5 bytes at (nil)"},
        SkippedRow{"TooManyBytes", SkipKind::kBadValue,
                   "1,0,allocate,0x20,18446744073709551615,0\n",
                   "more than 2^64 bytes are live"},
        SkippedRow{"UnmatchedFree", SkipKind::kUnmatchedFree,
                   "1,0,free,0x900,64,0\n", "free of 0x900, which is not live"},
        SkippedRow{"FreeOfNull", SkipKind::kNullFree, "1,0,free,(nil),0,0\n",
                   "free of (nil), which is not live"}),
    [](const ::testing::TestParamInfo<SkippedRow>& test) {
      return std::string(test.param.name);
    });

TEST(RmmLogTest, AllocateOfALiveAddressFreesTheOldBlock) {
  const Trace trace =
      ReadRows(std::string(kAllocate10) +
               "1,0,allocate,0x10,7,0x5\n1,0,free,0x10,7,0x5\n");
  EXPECT_THAT(trace.events,
              ElementsAre(TraceEvent::Allocate(0, 0), TraceEvent::Free(0, 0),
                          TraceEvent::Allocate(0, 1), TraceEvent::Free(0, 1)));
  EXPECT_EQ(trace.LineOf(1), 3U);
  EXPECT_EQ(trace.LineOf(2), 3U);
  EXPECT_EQ(trace.LineOf(3), 4U);
  EXPECT_EQ(trace.peak_live_bytes, 100U);
  EXPECT_EQ(trace.skipped.of(SkipKind::kMissingFree).count, 1U);
}

TEST(RmmLogTest, BlankLinesAreNoRows) {
  const Trace trace =
      ReadRows(std::string(kAllocate10) + "\n\r\n1,0,free,0x10,100,0\n");
  EXPECT_EQ(trace.events.size(), 2U);
  EXPECT_EQ(trace.LineOf(1), 5U);
  EXPECT_TRUE(trace.skipped.empty());
}

TEST(RmmLogTest, ALineWithoutEndIsSkipped) {
  const Trace trace =
      ReadRows(std::string(kAllocate10) + std::string(3'000'000, 'x') +
               "\n1,0,free,0x10,100,0\n");
  EXPECT_EQ(trace.events.size(), 2U);
  EXPECT_EQ(trace.LineOf(1), 4U);
  EXPECT_EQ(trace.skipped.of(SkipKind::kForeignRow).count, 1U);
}

TEST(RmmLogTest, OneRowInAHundredMayBeSkipped) {
  std::string rows;
  for (int i = 1; i < 100; ++i) {
    rows += "1,0,allocate," + std::to_string(i) + ",5,0\n";
  }
  EXPECT_FALSE(ReadRows(rows + "a\n").skipped.IsSuspect());
  EXPECT_TRUE(ReadRows(rows + "a\na\n").skipped.IsSuspect());
}

TEST(RmmLogTest, IfNothingIsReadableTheFirstReasonIsTheError) {
  EXPECT_EQ(RmmError(std::string(kHeader) + "1,0,free,1,1,0\n1,0,bad\n"),
            "2: free of 0x1, which is not live");
}

}  // namespace
}  // namespace strata::tools
