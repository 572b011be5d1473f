#include "strata/tools/replay/recordings.h"

#include <filesystem>
#include <stdexcept>
#include <system_error>

#include "strata/facade/settings/tf_environment.h"
#include "strata/tools/peers/registry.h"

namespace strata::tools {
namespace {

std::string Named(std::string_view flag, const std::string& path) {
  return "--" + std::string(flag) + "=" + path;
}

}  // namespace

void ForEachRecording(
    const Options& options,
    FunctionRef<void(std::string_view flag, const std::string& path)> act) {
  const auto act_on = [&](std::string_view flag, const std::string& path) {
    if (!path.empty()) act(flag, path);
  };
  act_on("strata_trace_file", options.decorators.trace_path);
  act_on("strata_trace_events_file", options.decorators.trace_events_path);
  act_on("strata_allocation_log_file", options.decorators.allocation_log_path);
  act_on(kDeviceTraceFlag, options.platform.device_trace_path);
}

Options WithoutRecordings(const Options& options) {
  // Environment variables also enable files; disable them for the second run.
  Options quiet = peers::IsPeerName(options.allocator_strategy)
                      ? options
                      : WithProcessEnvironment(options);
  quiet.host.tf_environment = false;
  quiet.decorators.trace_path.clear();
  quiet.decorators.trace_events_path.clear();
  quiet.decorators.allocation_log_path.clear();
  quiet.platform.device_trace_path.clear();
  quiet.strategy.bfc_memory_map_prefix.clear();
  quiet.strategy.bfc_memory_log_lines = 0;
  return quiet;
}

void RequireNoRecording(const Options& options, const std::string& why) {
  const auto refuse = [&](std::string_view flag, const std::string& path) {
    throw std::invalid_argument(Named(flag, path) + ": " + why);
  };
  ForEachRecording(options, refuse);
}

void RequireOtherFile(std::string_view flag, const std::string& path,
                      const std::vector<std::string>& read) {
  for (const std::string& one : read) {
    std::error_code error;
    if (!std::filesystem::equivalent(path, one, error)) continue;
    throw std::invalid_argument(Named(flag, path) + " is a file that is read");
  }
}

}  // namespace strata::tools
