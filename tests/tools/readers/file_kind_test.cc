#include "strata/tools/readers/file_kind.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "strata/platform/calls/call_trace.h"
#include "strata/tests/tools/temp_file.h"
#include "strata/tools/readers/trace_reader.h"

namespace strata::tools {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

struct ForeignFile {
  const char* test;
  std::string path;
  std::string content;
  const char* kind;
};

class ForeignKindTest : public ::testing::TestWithParam<ForeignFile> {};

TEST_P(ForeignKindTest, IsNamed) {
  const ForeignFile& file = GetParam();
  EXPECT_THAT(ForeignKind(file.content, file.path), HasSubstr(file.kind));
  InputBuffer input(file.path, file.content);
  EXPECT_THAT([&] { ReadTrace(input, {}); },
              ThrowsMessage<TraceError>(
                  HasSubstr("this is " + std::string(file.kind))));
}

INSTANTIATE_TEST_SUITE_P(
    Files, ForeignKindTest,
    ::testing::Values(
        ForeignFile{"JsonSnapshot", "s.json",
                    "{\"segments\": [], \"device_traces\": [[]]}\n",
                    "a memory snapshot of PyTorch as JSON"},
        ForeignFile{"JsonSegments", "s.json",
                    "[{\"device\": 0, \"address\": 1, \"blocks\": []}]",
                    "segments of torch.cuda.memory_snapshot() as JSON"},
        ForeignFile{"Kineto", "t.json",
                    "{ \"schemaVersion\": 1,\n \"traceEvents\": [] }\n",
                    "a profile (Kineto, or another Chrome trace)"},
        ForeignFile{"ChromeEvents", "t.json",
                    "\xef\xbb\xbf {\"traceEvents\":[{\"ph\":\"X\"}]}",
                    "a profile (Kineto, or another Chrome trace)"},
        ForeignFile{"Page", "p.html", "<!DOCTYPE html>\n<html></html>",
                    "an HTML or XML page"},
        ForeignFile{"MemoryViz", "p.html",
                    "\n<html><script>import {add_local_files} from "
                    "\"https://cdn/MemoryViz.js\"</script></html>",
                    "an HTML page of PyTorch's memory_viz"},
        ForeignFile{"Database", "x.sqlite",
                    std::string("SQLite format 3\0 CREATE TABLE t", 31),
                    "an SQLite database"},
        ForeignFile{"NsysDatabase", "x.sqlite",
                    "SQLite format 3 CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL",
                    "an SQLite export of Nsight Systems"},
        ForeignFile{"NsysReport", "x.NSYS-rep", "\x01\x02\x03",
                    "a report of Nsight Systems"},
        ForeignFile{"OldNsysReport", "x.qdrep.gz", "\x01\x02\x03",
                    "a report of Nsight Systems"},
        ForeignFile{"Zip", "x.zip", "PK\x03\x04 something", "a zip archive"},
        ForeignFile{"TorchSave", "x.pt", "PK\x03\x04 archive/data.pkl",
                    "an archive of torch.save()"},
        ForeignFile{"Zstd", "x.zst", "\x28\xb5\x2f\xfd data",
                    "a file compressed by zstd"},
        ForeignFile{"DeviceCalls", "calls.csv", kCallTraceHeader,
                    "a trace of device calls, which `strata check` reads"},
        ForeignFile{"AllocationLog", "log.json",
                    "{\"event\":\"step\",\"step_id\":1,\"op\":\"\"}\n",
                    "an allocation log of Strata"},
        ForeignFile{"JsonList", "list.json", "[1, 2]", "a list in JSON"}),
    [](const ::testing::TestParamInfo<ForeignFile>& test) {
      return std::string(test.param.test);
    });

TEST(FileKindTest, FilesThatMayBeTracesHaveNoKind) {
  for (const char* content :
       {"", "Thread,Time,Action,Pointer,Size,Stream\n", "\x80\x04}.",
        "# a comment\n",
        "{\"event\":\"makeAllocator\",\"payload\":{\"blocks\":1}}\n",
        "{\"category\":\"operation\",\"name\":\"segments\"}\n", "{}"}) {
    EXPECT_EQ(ForeignKind(content, "x"), "") << content;
  }
}

TEST(FileKindTest, IsSeenThroughGzip) {
  const TempFile file(".json.gz");
  file.WriteGzip("{\"traceEvents\": []}");
  EXPECT_THAT([&] { ReadTrace(file.path(), {}); },
              ThrowsMessage<TraceError>(HasSubstr("a profile (Kineto")));
}

}  // namespace
}  // namespace strata::tools
