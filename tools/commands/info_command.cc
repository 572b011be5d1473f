// strata info: the contents of this build, and the effect of the flags.

#include <cstdio>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "strata/allocation/decorators/registered/decorator_factories.h"
#include "strata/allocation/decorators/registry.h"
#include "strata/base/size.h"
#include "strata/facade/allocator_facade.h"
#include "strata/facade/flags.h"
#include "strata/facade/settings/auto_strategy.h"
#include "strata/platform/device.h"
#include "strata/platform/registry.h"
#include "strata/strategy/registry.h"
#include "strata/tools/commands/arguments.h"
#include "strata/tools/commands/commands.h"
#include "strata/tools/commands/flag_table.h"
#include "strata/tools/terminal/dump_json.h"
#include "strata/tools/terminal/table.h"

namespace strata::tools {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kInfoUsage =
    R"(usage: strata info [flags]

Lists the platforms, devices, strategies, layers and flags of this build, and
the layers that the given flags put between a user and each kind of memory.

  --format=table|json|flags  for people (default), for programs, or the flags
                             alone, as docs/flags.md
)";

Json CapsJson(const Caps& caps) {
  return {{"mem_pools", caps.mem_pools},
          {"virtual_memory", caps.virtual_memory},
          {"share_fd", caps.share_fd},
          {"share_fabric", caps.share_fabric},
          {"managed_memory", caps.managed_memory},
          {"pinned_memory", caps.pinned_memory},
          {"capture", caps.capture},
          {"graphs", caps.graphs},
          {"graph_mem_nodes", caps.graph_mem_nodes},
          {"user_objects", caps.user_objects},
          {"peer_access", caps.peer_access},
          {"compute_major", caps.compute_major},
          {"compute_minor", caps.compute_minor},
          {"simulated", caps.simulated},
          {"phantom_memory", caps.phantom_memory},
          {"map_granularity_bytes", caps.map_granularity_bytes},
          {"alloc_alignment_bytes", caps.alloc_alignment_bytes}};
}

Json DeviceJson(Platform& platform, int ordinal, const Options& options) {
  Device& device = platform.device(ordinal);
  std::size_t free_bytes = 0;
  std::size_t total_bytes = 0;
  const Status status = device.MemGetInfo(&free_bytes, &total_bytes);
  if (status != Status::kSuccess) {
    throw std::runtime_error("info: the memory of device " +
                             std::to_string(ordinal) +
                             " is unknown: " + StatusName(status));
  }
  const StrategyChoice choice = ChooseStrategy(options, device.caps());
  return {
      {"name", std::string(platform.name()) + ":" + std::to_string(ordinal)},
      {"total_bytes", total_bytes},
      {"free_bytes", free_bytes},
      {"caps", CapsJson(device.caps())},
      {"auto_strategy",
       {{"name", choice.name},
        {"why", choice.why},
        {"is_in_use", options.Strategy() == kAutoStrategy}}}};
}

// For each platform of this build that cannot be used here: name -> reason.
Json ProblemsJson(PlatformOptions options) {
  options.device_trace_path.clear();
  Json problems = Json::object();
  for (const std::string& name : PlatformNames()) {
    options.platform = name;
    try {
      MakePlatform(options);
    } catch (const std::exception& error) {
      problems[name] = error.what();
    }
  }
  return problems;
}

Json FlagsJson() {
  Json flags = Json::array();
  for (const OptionInfo& option : OptionTable()) {
    flags.push_back({{"name", option.name},
                     {"type", option.type},
                     {"default", option.default_value},
                     {"help", option.help}});
  }
  return flags;
}

// The decorators that this program registered.
Json RegisteredJson() {
  Json registered = Json::array();
  for (const DecoratorFactory& factory : DecoratorFactories::Instance().All()) {
    Json options = Json::array();
    for (const DecoratorOption& option : factory.options) {
      options.push_back({{"name", option.name},
                         {"type", option.type},
                         {"default", option.default_value},
                         {"help", option.help}});
    }
    registered.push_back({{"name", factory.name},
                          {"position", ToString(factory.position)},
                          {"options", std::move(options)}});
  }
  return registered;
}

Json InfoJson(AllocatorFacade& facade, const Options& options) {
  Json info;
  info["platforms"] = PlatformNames();
  info["platform_problems"] = ProblemsJson(options.platform);
  info["devices"] = Json::array();
  for (int i = 0; i < facade.platform().device_count(); ++i) {
    info["devices"].push_back(DeviceJson(facade.platform(), i, options));
  }
  info["strategies"] = StrategyNames();
  info["strategies"].push_back(kAutoStrategy);
  info["decorators"] = DecoratorNames();
  info["registered_decorators"] = RegisteredJson();
  info["chains"] = Json::object();
  for (const Place place : facade.places()) {
    info["chains"][ToString(place)] = facade.Layers(place);
  }
  info["stream_lock"] = options.decorators.biased_lock() ? "biased" : "word";
  info["flags"] = FlagsJson();
  return info;
}

std::string Joined(const Json& names, const char* separator) {
  std::string text;
  for (const Json& name : names) {
    text += (text.empty() ? "" : separator) + name.get<std::string>();
  }
  return text;
}

// The features and figures of a device.
std::string CapsText(const Json& caps) {
  std::string text;
  for (const auto& [name, value] : caps.items()) {
    if (value.is_boolean() && !value.get<bool>()) continue;
    text += (text.empty() ? "" : ", ") + name;
    if (!value.is_boolean()) text.append("=").append(value.dump());
  }
  return text;
}

// Returns a line if the device is simulated, although its platform is CUDA.
std::string DriverText(const Json& device) {
  const bool stand_in = device["caps"]["simulated"].get<bool>() &&
                        device["name"].get<std::string>().rfind("sim:", 0) != 0;
  return stand_in ? "    the driver is simulated: nothing runs on a GPU\n" : "";
}

// `text` in lines of at most 80 characters, each after `indent`.
std::string Wrapped(std::string_view text, const std::string& indent) {
  constexpr std::size_t kLineWidth = 80;
  std::string result;
  while (!text.empty()) {
    std::size_t end = kLineWidth - indent.size();
    end = text.size() <= end ? text.size() : text.rfind(' ', end);
    if (end == std::string_view::npos) end = text.size();
    result += indent + std::string(text.substr(0, end)) + "\n";
    text.remove_prefix(end);
    if (!text.empty()) text.remove_prefix(1);
  }
  return result;
}

std::string RegisteredText(const Json& registered) {
  std::string text;
  if (!registered.empty()) text = "\nfor --strata_decorators:\n";
  for (const Json& decorator : registered) {
    text += "  " + decorator["name"].get<std::string>() + ", " +
            decorator["position"].get<std::string>() + "\n";
    for (const Json& option : decorator["options"]) {
      text += "    " + option["name"].get<std::string>() + " (" +
              option["type"].get<std::string>() + ", default: '" +
              option["default"].get<std::string>() + "')\n" +
              Wrapped(option["help"].get<std::string>(), "      ");
    }
  }
  return text;
}

std::string InfoText(const Json& info) {
  std::string text = "platforms:  " + Joined(info["platforms"], ", ") +
                     "\nstrategies: " + Joined(info["strategies"], ", ") +
                     "\ndecorators: " + Joined(info["decorators"], ", ") +
                     " (outermost first)\n\ndevices:\n";
  for (const Json& device : info["devices"]) {
    text += "  " + device["name"].get<std::string>() + "  " +
            HumanBytes(device["free_bytes"].get<std::uint64_t>()) +
            " free of " +
            HumanBytes(device["total_bytes"].get<std::uint64_t>()) + "\n" +
            Wrapped(CapsText(device["caps"]), "    ") + DriverText(device);
    const Json& choice = device["auto_strategy"];
    text +=
        Wrapped(std::string("--allocator_strategy=auto ") +
                    (choice["is_in_use"].get<bool>() ? "is " : "would be ") +
                    choice["name"].get<std::string>() + ": " +
                    choice["why"].get<std::string>(),
                "    ");
  }
  for (const auto& [name, problem] : info["platform_problems"].items()) {
    text += "  no " + name + " here\n" +
            Wrapped(problem.get<std::string>(), "    ");
  }
  text += "\nchains, as these flags build them:\n";
  for (const auto& [place, layers] : info["chains"].items()) {
    text += "  " + place + ": " + Joined(layers, " > ") + "\n";
  }
  text +=
      "\nlock of a stream: " + info["stream_lock"].get<std::string>() + "\n";
  text += RegisteredText(info["registered_decorators"]);
  text += "\nflags:\n";
  for (const Json& flag : info["flags"]) {
    text += "  --" + flag["name"].get<std::string>() + " (" +
            flag["type"].get<std::string>() + ", default: '" +
            flag["default"].get<std::string>() + "')\n" +
            Wrapped(flag["help"].get<std::string>(), "      ");
  }
  return text;
}

}  // namespace

int RunInfo(int argc, char** argv) {
  Arguments arguments(argc, argv);
  if (arguments.TakeHelp()) {
    std::fputs(kInfoUsage, stdout);
    return 0;
  }
  const std::string format =
      arguments.TakeChoice("format", "table", {"table", "json", "flags"});
  const std::vector<std::string> others = arguments.ParseFlags();
  if (!others.empty()) {
    throw std::invalid_argument("info: unexpected argument '" + others[0] +
                                "'");
  }
  if (format == "flags") {
    std::fputs(FlagsMarkdown().c_str(), stdout);
    return 0;
  }
  Options options = OptionsFromFlags();
  // Show the layers, but do not overwrite files of other runs.
  for (std::string* path :
       {&options.decorators.trace_path, &options.decorators.trace_events_path,
        &options.decorators.allocation_log_path}) {
    if (!path->empty()) *path = "/dev/null";
  }
  options.platform.device_trace_path.clear();
  AllocatorFacade facade(options);
  const Json info = InfoJson(facade, options);
  const std::string text = format == "json" ? DumpJson(info) : InfoText(info);
  std::fputs(text.c_str(), stdout);
  return 0;
}

}  // namespace strata::tools
