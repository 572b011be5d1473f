#ifndef STRATA_TOOLS_RECORDINGS_H_
#define STRATA_TOOLS_RECORDINGS_H_

#include <string>
#include <string_view>
#include <vector>

#include "strata/facade/options.h"
#include "strata/platform/function_ref.h"

// The files that options have a run write. Errors: std::invalid_argument naming
// the flag and its file.
namespace strata {

// The flag of the file of device calls, which peers make as well.
inline constexpr std::string_view kDeviceTraceFlag = "strata_device_trace_file";

// Calls `act` with the name of each flag that has a file recorded to, and the
// file.
void ForEachRecording(
    const Options& options,
    FunctionRef<void(std::string_view flag, const std::string& path)> act);

// `options` without the files and logs that a run writes: a second run would
// overwrite those of the first. The variables of the environment that
// strata_tf_environment asks for are applied.
Options WithoutRecordings(const Options& options);

// Refuses `options` that record anything; `why` ends the message.
void RequireNoRecording(const Options& options, const std::string& why);

// Refuses a `path`, written by `flag`, that is one of the files `read`.
void RequireOtherFile(std::string_view flag, const std::string& path,
                      const std::vector<std::string>& read);

}  // namespace strata

#endif  // STRATA_TOOLS_RECORDINGS_H_
