#include "strata/tools/replay/replay_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>
#include <string>

#include "strata/base/size.h"
#include "strata/tests/tools/trace/trace_text.h"

namespace strata::tools {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

constexpr std::uint64_t kMiB = Mebibytes(1);

// A result for a trace of 100 MiB on a device of 200 MiB.
ReplayRow RunOf(const std::string& strategy, std::uint64_t reserved_bytes) {
  ReplayRow row;
  row.strategy = strategy;
  row.result.peak_reserved_bytes = reserved_bytes;
  row.ns_per_op = 12.5;
  return row;
}

ReplayRow FailedRunOf(const std::string& strategy, std::uint64_t line) {
  ReplayRow row = RunOf(strategy, 200 * kMiB);
  row.result.failed_event = line - 1;
  row.failed_line = line;
  row.ns_per_op.reset();
  return row;
}

ReplayRow WithFit(ReplayRow row, std::uint64_t bytes) {
  row.has_fit = true;
  row.fit = Fit{bytes, 0};
  return row;
}

TraceReport ReportOf(const std::vector<ReplayRow>& rows) {
  TraceReport report;
  report.trace.path = "x.csv";
  report.trace.operations = 10;
  report.trace.peak_live_bytes = 100 * kMiB;
  report.device_bytes = 200 * kMiB;
  for (const ReplayRow& row : rows) {
    report.rows.push_back(row);
    report.rows.back().trace = report.trace;
  }
  return report;
}

// The recorded program ran out of memory. A strategy without failed tries
// serves the request.
TraceReport FailureReport(std::vector<ReplayRow> rows) {
  for (ReplayRow& row : rows) {
    if (row.result.failed_tries != 0) row.ns_per_op.reset();
  }
  TraceReport report = ReportOf(rows);
  report.trace.unit = Trace::Unit::kEntry;
  report.trace.tries = 1;
  report.trace.first_try_line = 7;
  report.trace.first_try_bytes = 24 * kMiB;
  report.is_recorded_device = true;
  for (ReplayRow& row : report.rows) row.trace = report.trace;
  return report;
}

ReplayRow Refusing(ReplayRow row) {
  row.result.failed_tries = 1;
  return row;
}

std::size_t Widest(const std::string& text) {
  std::istringstream lines(text);
  std::size_t widest = 0;
  for (std::string line; std::getline(lines, line);) {
    widest = std::max(widest, line.size());
  }
  return widest;
}

// --- The table --------------------------------------------------------------

TEST(ReplayReportTest, HeadingIsAboveTheTableAndTheSentenceBelow) {
  EXPECT_EQ(ToText(ReportOf({RunOf("auto_growth", 110 * kMiB)}), "x", false),
            "x: 10 operations, peak live 100.0 MiB, device of 200.0 MiB\n"
            "strategy      reserved  /live  ns/op\n"
            "auto_growth  110.0 MiB  1.100   12.5\n"
            "auto_growth reserves 110.0 MiB, 10.0 % more than the peak live "
            "(100.0 MiB).\n");
}

// The longest names, the largest numbers, and all columns.
TEST(ReplayReportTest, TableFits80Columns) {
  constexpr std::uint64_t kWide = 1023 * kMiB + 900000;
  TraceReport report =
      FailureReport({WithFit(RunOf("peer:pytorch_expandable", kWide), kWide),
                     Refusing(WithFit(RunOf("auto_growth", kWide), kWide))});
  report.trace.operations = 142675;
  report.trace.releases = 12345;
  report.trace.peak_live_bytes = kWide;
  report.device_bytes = kWide;
  for (ReplayRow& row : report.rows) {
    row.trace = report.trace;
    row.trace.peak_live_bytes = 1;
    row.trace.tries = 100;
    row.result.failed_tries = 88;
  }
  std::string text = ToText(report, "gpt_varlen_two_streams", false);
  EXPECT_THAT(text, HasSubstr("12/100 served"));
  text.erase(text.rfind('\n', text.size() - 2));  // the sentence
  EXPECT_LE(Widest(text), 80U) << text;
}

TEST(ReplayReportTest, WideTableHasEveryColumn) {
  const TraceReport report =
      ReportOf({WithFit(RunOf("auto_growth", 110 * kMiB), 105 * kMiB)});
  const std::string narrow = ToText(report, "x", false);
  const std::string wide = ToText(report, "x", true);
  for (const char* title : {"strategy", "reserved", "/live", "fits on"}) {
    EXPECT_THAT(narrow, HasSubstr(title));
    EXPECT_THAT(wide, HasSubstr(title));
  }
  for (const char* title : {"operations  ", "  peak live  ", "fails above",
                            "device ms", "ns/op", "device calls"}) {
    EXPECT_THAT(narrow, Not(HasSubstr(title)));
    EXPECT_THAT(wide, HasSubstr(title));
  }
}

// The largest numbers of the recorded traces, on a device that is too small.
ReplayRow WithPasses(ReplayRow row) {
  row.passes = 10;
  for (std::uint64_t pass = 1; pass <= 10; ++pass) {
    PassSample sample;
    sample.pass = pass;
    sample.device_calls["mem_alloc"] = 12000 + pass;
    sample.modelled_ns = 123'400'000 + pass * 100'000;
    sample.longest_request_ns = 4'000'000 + pass * 1'000;
    sample.peak_reserved_bytes = (100 + pass) * kMiB;
    row.result.passes.push_back(sample);
  }
  return row;
}

TEST(ReplayReportTest, PassColumnsCompareTheFirstAndTheLastPass) {
  const TraceReport report =
      ReportOf({WithPasses(RunOf("auto_growth", 110 * kMiB))});
  EXPECT_THAT(
      ToText(report, "x", false),
      HasSubstr("strategy      reserved  /live           calls         pass ms"
                "    longest us\n"
                "auto_growth  110.0 MiB  1.100  12001 -> 12010  123.5 -> 124.4"
                "  4001 -> 4010\n"));
  EXPECT_THAT(ToText(report, "x", true),
              AllOf(HasSubstr("in pass 10    in last"),
                    HasSubstr(" 110.0 MiB  110.0 MiB"), HasSubstr("ns/op")));
}

TEST(ReplayReportTest, PassColumnsThatDoNotFit80CharactersAreWide) {
  const TraceReport report =
      ReportOf({WithPasses(RunOf("peer:pytorch_expandable", 110 * kMiB))});
  const std::string narrow = ToText(report, "x", false);
  EXPECT_THAT(narrow, AllOf(HasSubstr("pass ms"), Not(HasSubstr("longest"))));
  EXPECT_THAT(ToText(report, "x", true), HasSubstr("longest us"));
  const std::string failed =
      ToText(FailureReport({WithFit(report.rows[0], 1023 * kMiB)}), "x", false);
  EXPECT_THAT(failed, AllOf(HasSubstr("served"), Not(HasSubstr("calls"))));
}

TEST(ReplayReportTest, NameThatIsTooLongCostsNoColumn) {
  const TraceReport report =
      ReportOf({WithPasses(RunOf(std::string(70, 'x'), 110 * kMiB))});
  EXPECT_THAT(ToText(report, "x", false), HasSubstr("longest us"));
}

TEST(ReplayReportTest, PassWithoutASampleIsADash) {
  ReplayRow row = WithPasses(FailedRunOf("direct", 3));
  row.result.passes.clear();
  EXPECT_THAT(ToText(ReportOf({row}), "x", false),
              HasSubstr("      -        -           -  out of memory"));
  row.result.failed_pass = 7;
  EXPECT_THAT(Summary(ReportOf({row})),
              HasSubstr("(direct at line 3 of pass 7)"));
}

TEST(ReplayReportTest, EveryColumnIsExplained) {
  const std::string help = ColumnsForHelp();
  for (const char* line :
       {"  strategy ", " *operations ", " *peak live ", "  reserved ",
        "  /live ", "  fits on ", " *fails above ", " *device ms ", "  ns/op ",
        "  calls ", "  pass ms ", "  longest us ", " *in pass 10 ",
        " *in last ", "  outcome ", " *device calls "}) {
    EXPECT_THAT(help, HasSubstr(line));
  }
  EXPECT_LE(Widest(help), 80U);
}

TEST(ReplayReportTest, OutcomeIsThereIfAnythingFails) {
  const ReplayRow runs = RunOf("bfc", 110 * kMiB);
  EXPECT_THAT(ToText(ReportOf({runs}), "x", false), Not(HasSubstr("outcome")));
  const std::string failed =
      ToText(ReportOf({runs, FailedRunOf("direct", 3)}), "x", false);
  EXPECT_THAT(failed, AllOf(HasSubstr("outcome"), HasSubstr("  runs\n"),
                            HasSubstr("  out of memory\n")));
  const std::string tried =
      ToText(FailureReport({runs, Refusing(RunOf("direct", 1))}), "x", false);
  EXPECT_THAT(tried,
              AllOf(HasSubstr("  served\n"), HasSubstr("  not served\n")));
}

TEST(ReplayReportTest, AFitThatIsNotFoundIsSaid) {
  ReplayRow row = RunOf("direct", 110 * kMiB);
  row.has_fit = true;
  EXPECT_THAT(ToText(ReportOf({row}), "x", false),
              AllOf(HasSubstr("fits on"), HasSubstr("none")));
}

TEST(ReplayReportTest, HeadingSaysThatTheResultMayBeWrong) {
  TraceReport report = ReportOf({RunOf("bfc", 110 * kMiB)});
  report.trace.skipped.AddRows(100);
  report.trace.skipped.Add(SkipKind::kUnmatchedFree, 3, "why", 1);
  EXPECT_THAT(ToText(report, "x", false), StartsWith("x: 10 operations"));
  report.trace.skipped.Add(SkipKind::kForeignRow, 5, "why", 1);
  EXPECT_THAT(
      ToText(report, "x", false),
      StartsWith("x: THE RESULT MAY BE WRONG, as parts of the file are "
                 "skipped\n"
                 "  (foreign_row 1, unmatched_free 1; the file has 100 rows)\n"
                 "10 operations, peak live"));
}

TEST(ReplayReportTest, TracesOfOneNameHaveTheirPaths) {
  EXPECT_THAT(NamesOf({"x/t.v2.csv.gz", "y/t.v3.csv.gz"}),
              ElementsAre("t.v2", "t.v3"));
  EXPECT_THAT(NamesOf({"x/t.v2.csv.gz", "y/t.v2.csv", "z/u.pickle"}),
              ElementsAre("x/t.v2.csv.gz", "y/t.v2.csv", "u"));
  EXPECT_THAT(NamesOf({"x/t.csv", "x/t.csv"}), ElementsAre("t", "t"));
}

// --- The sentence -----------------------------------------------------------

TEST(ReplaySummaryTest, ComparesWithTheRecordedProgram) {
  TraceReport report = ReportOf({RunOf("bfc", 110 * kMiB)});
  report.trace.recorded_peak_bytes = 220 * kMiB;
  EXPECT_EQ(Summary(report),
            "bfc reserves 110.0 MiB, 50.0 % less than the recorded program "
            "reserved (220.0 MiB).");
  report.trace.recorded_peak_bytes = 110 * kMiB;
  EXPECT_EQ(Summary(report),
            "bfc reserves 110.0 MiB, as much as the recorded program "
            "reserved.");
}

TEST(ReplaySummaryTest, FitsAreComparedWithEachOther) {
  TraceReport report =
      ReportOf({WithFit(RunOf("bfc", 110 * kMiB), 105 * kMiB)});
  report.trace.recorded_peak_bytes = 220 * kMiB;
  EXPECT_EQ(Summary(report),
            "bfc fits on 105.0 MiB; the recorded program reserved 220.0 MiB.");
  report.rows.push_back(WithFit(RunOf("a", 110 * kMiB), 120 * kMiB));
  EXPECT_EQ(Summary(report),
            "Both run; bfc fits on the least, 105.0 MiB, 12.5 % less than a "
            "(120.0 MiB).");
}

TEST(ReplaySummaryTest, OfSeveralTheLeastIsNamed) {
  EXPECT_EQ(
      Summary(ReportOf({RunOf("bfc", 150 * kMiB), RunOf("a", 120 * kMiB)})),
      "Both run; a reserves the least, 120.0 MiB, 20.0 % less than bfc "
      "(150.0 MiB).");
  EXPECT_EQ(Summary(ReportOf({WithFit(RunOf("bfc", 150 * kMiB), 105 * kMiB),
                              WithFit(RunOf("a", 120 * kMiB), 120 * kMiB)})),
            "Both run; bfc fits on the least, 105.0 MiB, 12.5 % less than a "
            "(120.0 MiB).");
}

TEST(ReplaySummaryTest, SaysHowManyRun) {
  const ReplayRow row = RunOf("b", 130 * kMiB);
  EXPECT_THAT(Summary(ReportOf({RunOf("a", 120 * kMiB), row, row})),
              StartsWith("All 3 run; a reserves the least, "));
}

TEST(ReplaySummaryTest, NamesAllThatNeedTheLeast) {
  const ReplayRow a = RunOf("a", 120 * kMiB);
  const ReplayRow b = RunOf("b", 120 * kMiB);
  EXPECT_EQ(Summary(ReportOf({a, b, RunOf("c", 150 * kMiB)})),
            "All 3 run; a and b reserve the least, 120.0 MiB, 20.0 % less than "
            "c (150.0 MiB).");
  EXPECT_EQ(Summary(ReportOf({a, b})),
            "Both run; each reserves 120.0 MiB, 20.0 % more than the peak live "
            "(100.0 MiB).");
  EXPECT_EQ(Summary(ReportOf({WithFit(a, 100 * kMiB), WithFit(b, 100 * kMiB)})),
            "Both run; each fits on 100.0 MiB, as much as the peak live.");
}

TEST(ReplaySummaryTest, NamesTheLimitsOfFlagsWhichPeersDoNotHave) {
  TraceReport report = ReportOf({FailedRunOf("a", 3)});
  report.has_limit = true;
  const std::string begin =
      "On 200.0 MiB and within the limits of the flags, a runs out of memory "
      "(a at line 3); ";
  report.limit_bytes = 150 * kMiB;
  EXPECT_EQ(Summary(report), begin + "no other strategy runs.");
  report.limit_bytes = 99 * kMiB;
  EXPECT_EQ(Summary(report),
            begin +
                "no allocator can serve it, as 100.0 MiB are live at a "
                "time.");
  report.rows.push_back(RunOf("peer:pytorch", 120 * kMiB));
  EXPECT_EQ(Summary(report),
            begin + "peer:pytorch runs. No flag limits a peer.");
  report = FailureReport({Refusing(RunOf("a", kMiB)), RunOf("b", kMiB)});
  report.has_limit = true;
  EXPECT_THAT(Summary(report),
              HasSubstr("; on its device of 200.0 MiB and within the limits of "
                        "the flags, b serves it, and a does not."));
}

TEST(ReplaySummaryTest, SaysWhoRunsOutOfMemoryAndWhoRuns) {
  EXPECT_EQ(Summary(ReportOf({FailedRunOf("a", 3), RunOf("b", 120 * kMiB),
                              FailedRunOf("c", 5)})),
            "On 200.0 MiB, a and c run out of memory (a at line 3); b runs.");
}

TEST(ReplaySummaryTest, SaysWhatHelpsIfNothingRuns) {
  TraceReport report = ReportOf({FailedRunOf("a", 3)});
  const std::string begin =
      "On 200.0 MiB, a runs out of memory (a at line 3); ";
  EXPECT_EQ(Summary(report),
            begin +
                "no other strategy runs; --fit finds the device that it "
                "fits on.");
  report.rows[0] = WithFit(report.rows[0], 230 * kMiB);
  EXPECT_EQ(Summary(report), begin + "a fits on 230.0 MiB, 30.0 MiB more.");
  report.alternatives = {"b", "peer:pytorch_expandable"};
  EXPECT_EQ(Summary(report), begin +
                                 "b and PyTorch's expandable_segments:True "
                                 "(peer:pytorch_expandable) run.");
  report.trace.peak_live_bytes = 201 * kMiB;
  EXPECT_EQ(Summary(report),
            begin +
                "no allocator can serve it, as 201.0 MiB are live at a "
                "time.");
}

TEST(ReplaySummaryTest, SaysWhoServesTheRequestThatRanOut) {
  const std::string begin =
      "The recorded program ran out of memory at entry 7 with a request of "
      "24.0 MiB; on its device of 200.0 MiB, ";
  TraceReport report =
      FailureReport({Refusing(RunOf("a", kMiB)), RunOf("b", kMiB)});
  EXPECT_EQ(Summary(report), begin + "b serves it, and a does not.");
  report = FailureReport({RunOf("a", kMiB), RunOf("b", kMiB)});
  EXPECT_EQ(Summary(report), begin + "a and b serve it.");
  report = FailureReport({Refusing(RunOf("a", kMiB))});
  report.alternatives = {"b"};
  EXPECT_EQ(Summary(report), begin + "a does not serve it; b does.");
  report.trace.tries = 3;
  report.is_recorded_device = false;
  report.is_default_device = true;
  EXPECT_THAT(Summary(report),
              HasSubstr("; on a device of 200.0 MiB (its own size is unknown; "
                        "--strata_sim_memory), a does not"));
  report.is_default_device = false;
  EXPECT_THAT(
      Summary(report),
      AllOf(HasSubstr(" of 24.0 MiB, and 2 more times; on a device of "),
            EndsWith("a does not serve all; b does.")));
}

}  // namespace
}  // namespace strata::tools
