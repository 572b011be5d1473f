#include "strata/tools/trace_reader.h"

#include "strata/tools/pytorch_snapshot.h"
#include "strata/tools/rmm_log.h"
#include "strata/tools/umpire_log.h"

namespace strata {
namespace {

constexpr char kFirstOfPickle = '\x80';  // PROTO

// The first byte, left in place; 0 if there is none.
char FirstByte(InputBuffer& input) {
  try {
    if (input.size() == 0 && !input.Fill()) return 0;
  } catch (const InputError& error) {
    throw TraceError(input.path(), 1, error.what());
  }
  return *input.data();
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
