#ifndef STRATA_TOOLS_REPLAY_RECORDINGS_H_
#define STRATA_TOOLS_REPLAY_RECORDINGS_H_

#include <string>
#include <string_view>
#include <vector>

#include "strata/base/function_ref.h"
#include "strata/facade/options.h"

// The files that the options let a run write. Errors: std::invalid_argument
// naming the flag and its file.
namespace strata::tools {

// The flag of the file of device calls. Peers write such a file, too.
inline constexpr std::string_view kDeviceTraceFlag = "strata_device_trace_file";

// Calls `act` with the name of each flag that records to a file, and the file.
void ForEachRecording(
    const Options& options,
    FunctionRef<void(std::string_view flag, const std::string& path)> act);

// `options` without the files and logs that a run writes: a second run would
// overwrite the files of the first. Applies the environment variables of
// strata_tf_environment.
Options WithoutRecordings(const Options& options);

// Throws if `options` record to a file; `why` ends the message.
void RequireNoRecording(const Options& options, const std::string& why);

// Throws if `path`, written by `flag`, is one of the files in `read`.
void RequireOtherFile(std::string_view flag, const std::string& path,
                      const std::vector<std::string>& read);

}  // namespace strata::tools

#endif  // STRATA_TOOLS_REPLAY_RECORDINGS_H_
