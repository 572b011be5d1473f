#include "strata/platform/check/call_trace_reader.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <string>

#include "strata/platform/calls/call_trace.h"

namespace strata::check {
namespace {

class CallTraceReaderTest : public testing::Test {
 protected:
  ~CallTraceReaderTest() override { std::remove(path_.c_str()); }

  // The error for `text` behind the header, without the path.
  std::string ErrorOf(const std::string& text,
                      const std::string& header = kCallTraceHeader) {
    std::ofstream(path_) << header << "\n" << text;
    try {
      CallTraceReader reader(path_);
      CallRecord record;
      while (reader.Next(&record)) {
      }
      return "none";
    } catch (const CallTraceError& error) {
      return std::string(error.what()).substr(path_.size());
    }
  }

  const std::string path_ = testing::TempDir() + "strata_call_trace_reader_" +
                            std::to_string(getpid()) + ".csv";
};

TEST_F(CallTraceReaderTest, ReadsWhatATraceSays) {
  CallRecord record = RecordOf(DeviceCall::kMemcpyAsync, 0xabc, 4096, 0xdef);
  record.device = 1;
  record.stream_uid = 17;
  record.node = 0x99;
  record.status = Status::kIllegalAddress;
  record.time_ns = 12345;
  record.thread = 4;
  EXPECT_EQ(ToCsv(ParseCallRecord(ToCsv(record))), ToCsv(record));
}

TEST_F(CallTraceReaderTest, RangesEndWithinTheAddressSpace) {
  const std::string refused = " bytes do not end within 64 bits of address";
  EXPECT_EQ(ErrorOf("1,0,0,mem_alloc,0xfffffffffffffffe,1,0x0,0,0,0x0\n"
                    "1,0,0,use,0xfffffffffffffffe,2,0x0,0,0,0x0\n"),
            ":3: 2" + refused);
  EXPECT_EQ(ErrorOf("1,0,0,memcpy_async,0x0,256,0xffffffffffffff00,0,0,0x0\n"),
            ":2: 256" + refused);
  // An amount, and a handle.
  EXPECT_EQ(ErrorOf("1,0,0,pool_set_attribute,0x2,18446744073709551615,0x4,0,0,"
                    "0x0\n"),
            "none");
}

TEST_F(CallTraceReaderTest, TextOfTheFileIsNotForTerminals) {
  EXPECT_EQ(ErrorOf("1,0,0,\x1b[31m,0x0,0,0x0,0,0,0x0\n"),
            ":2: '?[31m' is no call");
}

TEST_F(CallTraceReaderTest, ReadsEventsAndBothEndsOfLines) {
  std::ofstream(path_) << kCallTraceHeader << "\r\n"
                       << ToCsv(RecordOf(DeviceCall::kBlockMark, 1)) << "\r\n"
                       << ToCsv(RecordOf(DeviceCall::kMemFree, 2)) << "\n";
  CallTraceReader reader(path_);
  CallRecord record;
  ASSERT_TRUE(reader.Next(&record));
  EXPECT_EQ(record.call, DeviceCall::kBlockMark);
  ASSERT_TRUE(reader.Next(&record));
  EXPECT_EQ(record.ptr, 2U);
  EXPECT_FALSE(reader.Next(&record));
}

TEST_F(CallTraceReaderTest, NamesTheFileThatIsMissing) {
  try {
    CallTraceReader reader("/nonexistent/calls.csv");
    FAIL() << "nothing thrown";
  } catch (const CallTraceError& error) {
    EXPECT_STREQ(
        error.what(),
        "/nonexistent/calls.csv: cannot be opened: No such file or directory");
  }
}

TEST_F(CallTraceReaderTest, RefusesAnotherHeader) {
  EXPECT_EQ(ErrorOf("", "Thread,Time,Action").substr(0, 21),
            ":1: is no call trace:");
}

TEST_F(CallTraceReaderTest, NamesTheLineThatIsCutOff) {
  const std::string line = ToCsv(RecordOf(DeviceCall::kMemFree, 2));
  std::string text = line;
  text.append("\n").append("5,1,0,mem_fr");
  EXPECT_EQ(ErrorOf(text), ":3: 4 fields, not 10");
}

TEST_F(CallTraceReaderTest, BlankLinesMayBeAtTheEndOnly) {
  const std::string line = ToCsv(RecordOf(DeviceCall::kMemFree, 2)) + "\n";
  EXPECT_EQ(ErrorOf(line + "\n\r\n\n"), "none");
  EXPECT_EQ(ErrorOf("\n"), "none");
  EXPECT_EQ(ErrorOf(line + "\n\n" + line), ":3: a blank line between calls");
}

TEST_F(CallTraceReaderTest, NamesWhatIsNoNumber) {
  EXPECT_EQ(ErrorOf("0,1,0,mem_free,0xg,0,0x0,0,0,0x0\n"),
            ":2: '0xg' is no number of this field");
  EXPECT_EQ(ErrorOf("0,1,0,mem_free,0x1,,0x0,0,0,0x0\n"),
            ":2: '' is no number of this field");
  EXPECT_EQ(ErrorOf("0,1,0,mem_free,0x1,-4,0x0,0,0,0x0\n"),
            ":2: '-4' is no number of this field");
}

TEST_F(CallTraceReaderTest, NamesACallThatThereIsNot) {
  EXPECT_EQ(ErrorOf("0,1,0,mem_frees,0x1,0,0x0,0,0,0x0\n"),
            ":2: 'mem_frees' is no call");
}

}  // namespace
}  // namespace strata::check
