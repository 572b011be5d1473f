#include "strata/facade/gflags/flag_registry.h"

#include <gflags/gflags.h>

#include <cstddef>
#include <cstring>
#include <functional>
#include <mutex>
#include <set>
#include <stdexcept>
#include <string_view>
#include <utility>
#include <vector>

#include "strata/facade/flags.h"
#include "strata/facade/settings/registered_options.h"

namespace strata {
namespace {

// gflags holds the pointers as long as the process lives, also if the library
// with this code is unloaded. So nothing here is ever destroyed.
const char* Forever(const char* text) {
  const std::size_t bytes = std::strlen(text) + 1;
  return static_cast<const char*>(std::memcpy(new char[bytes], text, bytes));
}

template <class Value>
void Define(const char* name, Value default_value, const char* help) {
  auto* const current = new Value(default_value);
  auto* const initial = new Value(std::move(default_value));
  gflags::FlagRegisterer(Forever(name), Forever(help),
                         Forever("strata/facade/options.def"), current,
                         initial);
}

// A flag of Strata: its type in gflags, and its definition.
struct Row {
  const char* name;
  const char* type;
  std::function<void()> define;
};

using Bool = bool;
using Int64 = gflags::int64;
using Uint64 = gflags::uint64;
using Double = double;
using String = std::string;
using Bytes = std::string;

constexpr const char* kBool = "bool";
constexpr const char* kInt64 = "int64";
constexpr const char* kUint64 = "uint64";
constexpr const char* kDouble = "double";
constexpr const char* kString = "string";
constexpr const char* kBytes = "string";  // only Options can check a size

// Defines the flag of a registered option.
void DefineRegistered(const OptionInfo& option) {
  const std::string_view type = option.type;
  if (type == "Bool") {
    Define<Bool>(option.name, false, option.help);
  } else if (type == "Uint64") {
    Define<Uint64>(option.name, 0, option.help);
  } else if (type == "Double") {
    Define<Double>(option.name, 0, option.help);
  } else {
    Define<String>(option.name, "", option.help);
  }
  gflags::SetCommandLineOptionWithMode(
      option.name, option.default_value.c_str(), gflags::SET_FLAGS_DEFAULT);
}

std::vector<Row> Rows() {
  return {
#define STRATA_OPTION(Type, name, member, default_value, help) \
  {#name, k##Type, [] { Define<Type>(#name, default_value, help); }},
#include "strata/facade/options.def"
#undef STRATA_OPTION
#define STRATA_REMOVED_OPTION(Type, name, default_value, why) \
  {#name, k##Type, [] { Define<Type>(#name, default_value, why); }},
#include "strata/facade/settings/removed_options.def"
#undef STRATA_REMOVED_OPTION
  };
}

std::vector<Row> RegisteredRows() {
  std::vector<Row> rows;
  for (const OptionInfo& option : RegisteredOptionTable()) {
    const std::string_view type = option.type;
    const char* const own_type = type == "Bool"     ? kBool
                                 : type == "Uint64" ? kUint64
                                 : type == "Double" ? kDouble
                                                    : kString;
    rows.push_back(
        {option.name, own_type, [option] { DefineRegistered(option); }});
  }
  return rows;
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

bool IsDefined(const Row& row) {
  gflags::CommandLineFlagInfo info;
  if (!gflags::GetCommandLineFlagInfo(row.name, &info)) return false;
  if (info.type == row.type) return true;
  throw std::invalid_argument(std::string("the program defines the flag --") +
                              row.name + " with type " + info.type +
                              ", Strata needs type " + row.type);
}

}  // namespace

void RegisterFlags() {
  Handled& handled = HandledFlags();
  const std::lock_guard<std::mutex> guard(handled.mutex);
  std::vector<Row> rows = handled.all.empty() ? Rows() : std::vector<Row>();
  // A library that was loaded since may have registered further ones.
  for (Row& row : RegisteredRows()) {
    if (!handled.all.contains(row.name)) rows.push_back(std::move(row));
  }
  std::set<std::string> of_program;
  for (const Row& row : rows) {
    if (IsDefined(row)) of_program.insert(row.name);
  }
  for (const Row& row : rows) {
    if (!of_program.contains(row.name)) row.define();
    handled.all.insert(row.name);
  }
  handled.of_program.merge(of_program);
}

bool IsFlagOfProgram(const std::string& name) {
  Handled& handled = HandledFlags();
  const std::lock_guard<std::mutex> guard(handled.mutex);
  return handled.of_program.contains(name);
}

}  // namespace strata
