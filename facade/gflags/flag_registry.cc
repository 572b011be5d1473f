#include "strata/facade/gflags/flag_registry.h"

#include <gflags/gflags.h>

#include <cstddef>
#include <cstring>
#include <mutex>
#include <set>
#include <stdexcept>
#include <utility>
#include <vector>

#include "strata/facade/flags.h"

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
  void (*define)();
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

// The flags that the program defined before RegisterFlags.
std::set<std::string>& FlagsOfProgram() {
  static auto* const names = new std::set<std::string>;
  return *names;
}

std::set<std::string> FindFlagsOfProgram(const std::vector<Row>& rows) {
  std::set<std::string> names;
  for (const Row& row : rows) {
    gflags::CommandLineFlagInfo info;
    if (!gflags::GetCommandLineFlagInfo(row.name, &info)) continue;
    if (info.type != row.type) {
      throw std::invalid_argument(
          std::string("the program defines the flag --") + row.name +
          " with type " + info.type + ", Strata needs type " + row.type);
    }
    names.insert(row.name);
  }
  return names;
}

}  // namespace

void RegisterFlags() {
  static std::mutex mutex;
  static bool is_done = false;
  const std::lock_guard<std::mutex> guard(mutex);
  if (is_done) return;
  const std::vector<Row> rows = Rows();
  FlagsOfProgram() = FindFlagsOfProgram(rows);
  for (const Row& row : rows) {
    if (!FlagsOfProgram().contains(row.name)) row.define();
  }
  is_done = true;
}

bool IsFlagOfProgram(const std::string& name) {
  return FlagsOfProgram().contains(name);
}

}  // namespace strata
