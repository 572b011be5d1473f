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

// Of the calls of the device, which are there whatever allocates.
inline constexpr std::string_view kDeviceTraceFlag = "strata_device_trace_file";

// Calls `act` with the name of each flag that has a file recorded to, and the
// file.
void ForEachRecording(
    const Options& options,
    FunctionRef<void(std::string_view flag, const std::string& path)> act);

// `options` without what a run writes: into a recording the next run would
// write again, and its maps of memory and its logs say nothing new. What the
// environment asks for (strata_tf_environment) is among the options then.
Options WithoutRecordings(const Options& options);

// Nothing is recorded; `why` it cannot be.
void RequireNoRecording(const Options& options, const std::string& why);

// `path`, which `flag` has written, is none of the files that are read.
void RequireOtherFile(std::string_view flag, const std::string& path,
                      const std::vector<std::string>& read);

}  // namespace strata

#endif  // STRATA_TOOLS_RECORDINGS_H_
