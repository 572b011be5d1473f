#ifndef STRATA_TESTS_TOOLS_TRACE_TRACE_TEXT_H_
#define STRATA_TESTS_TOOLS_TRACE_TRACE_TEXT_H_

#include <cstdint>
#include <sstream>
#include <string>

#include "strata/tools/trace/trace.h"
#include "strata/tools/trace/trace_builder.h"

namespace strata::tools {

// Mapping unit of the simulated device, in bytes.
inline constexpr std::uint64_t kFrame = std::uint64_t{2} << 20;

// A trace in a short notation, such as "+a 100, +b 8 @2, -a, ?c 7, !". Line
// numbers count from 2, as in a file.
//   +a 100   allocates a with 100 bytes
//   +b 8 @2  allocates b with 8 bytes on stream 2
//   -a       frees a
//   ?c 7     tries a request of 7 bytes that failed when it was recorded
//   !        releases
inline Trace TraceOf(const std::string& text) {
  TraceBuilder builder("test.csv");
  std::istringstream items(text);
  std::string item;
  std::uint64_t line = 2;
  while (std::getline(items >> std::ws, item, ',')) {
    std::istringstream words(item.size() > 2 ? item.substr(2) : "");
    std::uint64_t bytes = 0;
    std::uint64_t stream = 0;
    char at = 0;
    words >> bytes >> at >> stream;
    const auto address =
        static_cast<unsigned char>(item.size() > 1 ? item[1] : 0);
    if (item[0] == '+') {
      builder.Allocate(line, address, bytes, stream);
    } else if (item[0] == '?') {
      builder.Try(line, bytes, stream);
    } else if (item[0] == '!') {
      builder.Release(line);
    } else {
      builder.Free(line, address, bytes, stream);
    }
    ++line;
  }
  return builder.Finish();
}

}  // namespace strata::tools

#endif  // STRATA_TESTS_TOOLS_TRACE_TRACE_TEXT_H_
