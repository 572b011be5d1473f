#include <gflags/gflags.h>

#include <cstddef>
#include <cstring>
#include <mutex>
#include <set>
#include <stdexcept>
#include <string_view>
#include <vector>

#include "strata/facade/flags.h"
#include "strata/facade/gflags/command_line.h"

namespace strata {
namespace {

// gflags holds the pointers as long as the process lives, also if the library
// with this code is unloaded. So nothing here is ever destroyed.
const char* Forever(const char* text) {
  const std::size_t bytes = std::strlen(text) + 1;
  return static_cast<const char*>(std::memcpy(new char[bytes], text, bytes));
}

template <class Value>
void Define(const OptionInfo& option) {
  gflags::FlagRegisterer(Forever(option.name), Forever(option.help),
                         Forever("strata/facade/options.def"), new Value(),
                         new Value());
}

// The name of the type in gflags. Only Options can check a size.
std::string_view TypeOf(const OptionInfo& option) {
  const std::string_view type = option.type;
  if (type == "Bool") return "bool";
  if (type == "Int64") return "int64";
  if (type == "Uint64") return "uint64";
  return type == "Double" ? "double" : "string";
}

void DefineFlag(const OptionInfo& option) {
  const std::string_view type = TypeOf(option);
  if (type == "bool") {
    Define<bool>(option);
  } else if (type == "int64") {
    Define<gflags::int64>(option);
  } else if (type == "uint64") {
    Define<gflags::uint64>(option);
  } else if (type == "double") {
    Define<double>(option);
  } else {
    Define<std::string>(option);
  }
  gflags::SetCommandLineOptionWithMode(
      option.name, option.default_value.c_str(), gflags::SET_FLAGS_DEFAULT);
}

// The flags that RegisterFlags has handled. Never destroyed.
struct Handled {
  std::mutex mutex;
  std::set<std::string> all;         // guarded by mutex
  std::set<std::string> of_program;  // defined by the program; guarded by mutex
};

Handled& HandledFlags() {
  static auto* const handled = new Handled;
  return *handled;
}

bool IsDefined(const OptionInfo& option) {
  gflags::CommandLineFlagInfo info;
  if (!gflags::GetCommandLineFlagInfo(option.name, &info)) return false;
  const std::string_view type = TypeOf(option);
  if (info.type == type) return true;
  throw std::invalid_argument(std::string("the program defines the flag --") +
                              option.name + " with type " + info.type +
                              ", Strata needs type " + std::string(type));
}

}  // namespace

void RegisterFlags() {
  Handled& handled = HandledFlags();
  const std::lock_guard<std::mutex> guard(handled.mutex);
  std::vector<OptionInfo> options = OptionTable();
  for (const RemovedOption& option : RemovedOptions()) {
    options.push_back(
        {option.name, option.type, option.default_value, option.why});
  }
  // A library that was loaded since may have registered further ones.
  std::erase_if(options, [&](const OptionInfo& option) {
    return handled.all.contains(option.name);
  });
  std::set<std::string> of_program;
  for (const OptionInfo& option : options) {
    if (IsDefined(option)) of_program.insert(option.name);
  }
  for (const OptionInfo& option : options) {
    if (!of_program.contains(option.name)) DefineFlag(option);
    handled.all.insert(option.name);
  }
  handled.of_program.merge(of_program);
}

bool IsFlagOfProgram(const std::string& name) {
  Handled& handled = HandledFlags();
  const std::lock_guard<std::mutex> guard(handled.mutex);
  return handled.of_program.contains(name);
}

}  // namespace strata
