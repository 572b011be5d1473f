#include "strata/tools/trace_reader.h"

#include <string_view>

#include "strata/tools/line_reader.h"
#include "strata/tools/pytorch_snapshot.h"
#include "strata/tools/rmm_log.h"
#include "strata/tools/umpire_log.h"

namespace strata {
namespace {

constexpr char kFirstOfPickle = '\x80';  // PROTO

constexpr std::size_t kMostSpaceBytes = 4096;

// The first byte but for a byte order mark and space, left in place; 0 if there
// is none near.
char FirstByte(InputBuffer& input) {
  std::string_view text;
  try {
    do {
      text = {input.data(), input.size()};
      if (text.starts_with(kByteOrderMark)) {
        text.remove_prefix(kByteOrderMark.size());
      }
      const std::size_t first = text.find_first_not_of(" \t\r\n");
      if (first != std::string_view::npos) return text[first];
    } while (text.size() < kMostSpaceBytes && input.Fill());
  } catch (const InputError& error) {
    throw TraceError(input.path(), 1, error.what());
  }
  return 0;
}

}  // namespace

Trace ReadTrace(InputBuffer& input, const TraceReaderOptions& options) {
  const char first = FirstByte(input);
  if (first == kFirstOfPickle) {
    return ReadPytorchSnapshot(input, options.device);
  }
  if (options.device) {
    throw TraceError(input.path(), 0,
                     "no snapshot, so it has no devices to choose from");
  }
  switch (first) {
    case '{':
    case '#':
      return ReadUmpireLog(input);
    default:
      return ReadRmmLog(input);
  }
}

Trace ReadTrace(const std::string& path, const TraceReaderOptions& options) {
  InputBuffer input(path);
  return ReadTrace(input, options);
}

}  // namespace strata
