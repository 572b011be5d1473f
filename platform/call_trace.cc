#include "strata/platform/call_trace.h"

#include <array>
#include <cerrno>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <memory>
#include <stdexcept>

#include "strata/platform/device.h"

namespace strata {
namespace {

// In any locale the same digits.
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
    : path_(path), file_(std::fopen(path.c_str(), "w")) {
  if (file_ == nullptr) {
    throw std::invalid_argument("strata_device_trace_file: cannot write '" +
                                path + "': " + std::strerror(errno));
  }
  failed_ = std::fprintf(file_, "%s\n", kCallTraceHeader) < 0;
}

CallTrace::~CallTrace() {
  if (std::fclose(file_) != 0) failed_ = true;
  if (failed_) {
    std::fprintf(stderr, "strata: the trace '%s' is not complete\n",
                 path_.c_str());
  }
}

void CallTrace::Write(const CallRecord& record) {
  const std::string line = ToCsv(record) + '\n';
  std::lock_guard lock(mutex_);
  if (std::fwrite(line.data(), 1, line.size(), file_) != line.size()) {
    failed_ = true;
  }
}

void TraceCalls(Platform& platform, const std::string& path) {
  const auto trace = std::make_shared<CallTrace>(path);
  for (int i = 0; i < platform.device_count(); ++i) {
    platform.device(i).AddCallObserver(
        [trace](const CallRecord& record) { trace->Write(record); });
  }
}

}  // namespace strata
