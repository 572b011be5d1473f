#include "strata/platform/calls/call_trace.h"

#include <array>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <memory>

#include "strata/platform/device.h"

namespace strata {
namespace {

// Writes the same digits in every locale.
template <class Number>
void Append(std::string* line, Number number, int base = 10) {
  std::array<char, 24> digits{};
  const auto end =
      std::to_chars(digits.data(), digits.data() + digits.size(), number, base);
  line->append(digits.data(), end.ptr);
}

void AppendHex(std::string* line, std::uint64_t number) {
  line->append("0x");
  Append(line, number, 16);
}

}  // namespace

std::string ToCsv(const CallRecord& record) {
  std::string line;
  line.reserve(128);
  Append(&line, record.time_ns);
  line += ',';
  Append(&line, record.thread);
  line += ',';
  Append(&line, record.device);
  line.append(",").append(DeviceCallName(record.call)).append(",");
  AppendHex(&line, record.ptr);
  line += ',';
  Append(&line, record.bytes);
  line += ',';
  AppendHex(&line, record.value);
  line += ',';
  Append(&line, record.stream_uid);
  line += ',';
  Append(&line, static_cast<std::int32_t>(record.status));
  line += ',';
  AppendHex(&line, record.node);
  return line;
}

CallTrace::CallTrace(const std::string& path)
    : file_("strata_device_trace_file", path) {
  std::fprintf(file_.get(), "%s\n", kCallTraceHeader);
}

void CallTrace::Write(const CallRecord& record) {
  const std::string line = ToCsv(record) + '\n';
  const std::lock_guard<std::mutex> lock(mutex_);
  std::fwrite(line.data(), 1, line.size(), file_.get());
  file_.EndEntry();
}

void TraceCalls(Platform& platform, const std::string& path) {
  const auto trace = std::make_shared<CallTrace>(path);
  for (int i = 0; i < platform.device_count(); ++i) {
    platform.device(i).AddCallObserver(
        [trace](const CallRecord& record) { trace->Write(record); });
  }
}

}  // namespace strata
