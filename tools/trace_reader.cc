#include "strata/tools/trace_reader.h"

#include "strata/tools/pytorch_snapshot.h"
#include "strata/tools/rmm_log.h"
#include "strata/tools/umpire_log.h"

namespace strata {
namespace {

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
  switch (FirstByte(input)) {
    case '\x80':
      return ReadPytorchSnapshot(input, options.device);
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
