#include "strata/tools/readers/umpire_log.h"

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "strata/base/parse_number.h"
#include "strata/base/quoted.h"
#include "strata/tools/readers/line_reader.h"
#include "strata/tools/trace/trace_builder.h"

namespace strata::tools {
namespace {

using SortedJson = nlohmann::json;

// The rows of one resource.
struct Resource {
  std::string name;
  TraceBuilder builder;
  // By address: live blocks with bytes, and the number of blocks without bytes.
  std::unordered_set<std::uint64_t> sized;
  std::unordered_map<std::uint64_t, std::uint64_t> empty;
  std::uint64_t rows = 0;
};

// An unusable line, and the reason.
struct BadLine {
  SkipKind kind;
  std::string reason;
};

bool IsDevice(std::string_view resource) {
  return resource == "DEVICE" || resource.starts_with("DEVICE::");
}

class UmpireLogReader {
 public:
  UmpireLogReader(InputBuffer& input, bool strict)
      : path_(input.path()), strict_(strict), lines_(input) {}

  Trace Read() {
    std::string_view line;
    while (lines_.Next(&line)) {
      const std::size_t first = line.find_first_not_of(" \t");
      const bool is_blank = first == std::string_view::npos;
      if (!is_blank && line[first] != '#') TryLine(line);
    }
    Resource* kept = nullptr;
    std::uint64_t rows = 0;
    for (Resource& resource : resources_) {
      const bool is_better =
          kept == nullptr || (!IsDevice(kept->name) && IsDevice(resource.name));
      if (is_better) kept = &resource;
      rows += resource.rows;
    }
    if (kept == nullptr) {
      kept = &resources_.emplace_back(Resource{"", MakeBuilder(), {}, {}});
    }
    kept->builder.MergeSkipped(log_);
    kept->builder.SkipOtherPlaces(rows - kept->rows);
    for (; calls_ > results_; --calls_) kept->builder.SkipFailure();
    // On a device, a reallocation is an allocate, a copy and a deallocate,
    // which are read.
    if (!IsDevice(kept->name)) kept->builder.SkipReallocations(reallocations_);
    return kept->builder.Finish();
  }

 private:
  [[noreturn]] static void Fail(const std::string& reason) {
    throw BadLine{SkipKind::kBadValue, reason};
  }

  void TryLine(std::string_view line) {
    log_.AddRows(1);
    try {
      ReadLine(line);
    } catch (const BadLine& bad) {
      if (strict_) throw TraceError(path_, lines_.line(), bad.reason);
      log_.Add(lines_.is_unended() ? SkipKind::kCutRow : bad.kind,
               lines_.line(), bad.reason);
    }
  }

  void ReadLine(std::string_view line) {
    const SortedJson json = SortedJson::parse(line, nullptr, false);
    if (!json.is_object()) {
      throw BadLine{
          SkipKind::kForeignRow,
          "no JSON object, as the lines of Umpire's logs are: " + Quoted(line)};
    }
    RequireProcess(json);
    if (json.contains("event")) {
      ReadOld(json);
    } else if (json.contains("category") && json.contains("name")) {
      ReadNew(json);
    } else {
      throw BadLine{SkipKind::kForeignRow,
                    "neither an event nor a category and a name"};
    }
  }

  // Up to version 6 the lines name the process. Addresses belong to one
  // process.
  void RequireProcess(const SortedJson& json) {
    const auto uid = json.find("uid");
    if (uid == json.end() || strict_) return;
    if (process_.is_null()) process_ = *uid;
    if (*uid == process_) return;
    throw BadLine{SkipKind::kOtherProcess,
                  "uid " + uid->dump() + ", the first is " + process_.dump()};
  }

  void ReadOld(const SortedJson& json) {
    const std::string event = Text(json, "event");
    const bool has_result = json.contains("result");
    if (event == "makeMemoryResource") {
      const std::string name = Text(Object(json, "payload"), "name");
      Name(Text(json, "result"), name, name);
    } else if (event == "makeAllocator" && has_result) {
      const SortedJson& payload = Object(json, "payload");
      Name(Text(Object(json, "result"), "allocator_ref"),
           Text(payload, "allocator_name"), ParentOf(payload, "args"));
    } else if (event == "allocate") {
      const SortedJson& payload = Object(json, "payload");
      const std::uint64_t bytes = Number(payload, "size");
      if (!has_result) {
        ++calls_;
        return;
      }
      ++results_;
      Allocate(Text(payload, "allocator_ref"),
               Pointer(Object(json, "result"), "memory_ptr"), bytes);
    } else if (event == "deallocate") {
      const SortedJson& payload = Object(json, "payload");
      Free(Text(payload, "allocator_ref"), Pointer(payload, "memory_ptr"));
    } else if (event == "reallocate" && has_result) {
      ++reallocations_;
    }
  }

  void ReadNew(const SortedJson& json) {
    if (Text(json, "category") != "operation") return;
    const std::string name = Text(json, "name");
    const bool makes_resource = name == "make_memory_resource";
    if (makes_resource || name == "make_allocator") {
      const SortedJson& strings = Object(json, "string_args");
      const std::string own = Text(Object(json, "tags"), "allocator_name");
      Name(Text(strings, "allocator_ref"), own,
           makes_resource ? own : ParentOf(json, "string_args"));
    } else if (name == "allocate" || name == "named_allocate") {
      const SortedJson& strings = Object(json, "string_args");
      Allocate(Text(strings, "allocator_ref"), Pointer(strings, "pointer"),
               Number(Object(json, "numeric_args"), "size"));
    } else if (name == "deallocate") {
      const SortedJson& strings = Object(json, "string_args");
      Free(Text(strings, "allocator_ref"), Pointer(strings, "pointer"));
    } else if (name == "reallocate") {
      ++reallocations_;
    }
  }

  // --- Allocators --------------------------------------------------------

  // `parent`: a known name or reference, or empty.
  void Name(const std::string& reference, const std::string& name,
            const std::string& parent) {
    const auto known = resource_names_.find(parent);
    const std::string resource = known != resource_names_.end() ? known->second
                                 : parent.empty()               ? name
                                                                : parent;
    resource_names_[reference] = resource;
    resource_names_[name] = resource;
  }

  // The first argument that names an allocator; others are sizes and the like.
  // In the new form arguments are arg0, arg1 …, among other members.
  std::string ParentOf(const SortedJson& json, const char* key) const {
    if (!json.contains(key)) return "";
    const SortedJson& arguments = json[key];
    for (const auto& [name, argument] : arguments.items()) {
      if (arguments.is_object() && !name.starts_with("arg")) continue;
      if (!argument.is_string()) continue;
      const auto& text = argument.get_ref<const std::string&>();
      if (resource_names_.count(text) > 0) return text;
    }
    return "";
  }

  Resource& ResourceOf(const std::string& reference) {
    const auto known = resource_names_.find(reference);
    // Created before the log began.
    const std::string& name =
        known == resource_names_.end() ? reference : known->second;
    for (Resource& resource : resources_) {
      if (resource.name == name) return resource;
    }
    return resources_.emplace_back(Resource{name, MakeBuilder(), {}, {}});
  }

  TraceBuilder MakeBuilder() const {
    return TraceBuilder(path_, Trace::Unit::kLine, strict_);
  }

  // --- Blocks ------------------------------------------------------------

  void Allocate(const std::string& allocator, std::uint64_t address,
                std::uint64_t bytes) {
    Resource& resource = ResourceOf(allocator);
    ++resource.rows;
    if (bytes == 0) {
      ++resource.empty[address];
      resource.builder.Allocate(lines_.line(), 0, 0, 0);
      return;
    }
    resource.builder.Allocate(lines_.line(), address, bytes, 0);
    resource.sized.insert(address);
  }

  void Free(const std::string& allocator, std::uint64_t address) {
    Resource& resource = ResourceOf(allocator);
    ++resource.rows;
    const bool is_sized = resource.sized.erase(address) > 0;
    const auto empty = resource.empty.find(address);
    const bool is_known = is_sized || empty != resource.empty.end();
    if (!is_known && reallocations_ > 0 && !IsDevice(resource.name)) {
      throw BadLine{
          SkipKind::kUnmatchedFree,
          "free of what no allocate made: a reallocate may have, and those of "
          "host memory are not read"};
    }
    if (!is_sized && empty != resource.empty.end()) {
      if (--empty->second == 0) resource.empty.erase(empty);
      address = 0;
    }
    resource.builder.Free(lines_.line(), address, std::nullopt, 0);
  }

  // --- Members of an object ----------------------------------------------

  const SortedJson& Member(const SortedJson& json, const char* key) const {
    const auto found = json.find(key);
    if (found == json.end()) Fail(std::string("no ") + key);
    return *found;
  }

  const SortedJson& Object(const SortedJson& json, const char* key) const {
    const SortedJson& member = Member(json, key);
    if (!member.is_object()) Fail(std::string(key) + " is not an object");
    return member;
  }

  std::string Text(const SortedJson& json, const char* key) const {
    const SortedJson& member = Member(json, key);
    if (!member.is_string()) Fail(std::string(key) + " is not a text");
    return member.get<std::string>();
  }

  std::uint64_t Number(const SortedJson& json, const char* key) const {
    const SortedJson& member = Member(json, key);
    if (member.is_number_unsigned()) return member.get<std::uint64_t>();
    Fail(std::string(key) + (member.is_number_integer()
                                 ? " is negative"
                                 : " is not an integer of 64 bits"));
  }

  std::uint64_t Pointer(const SortedJson& json, const char* key) const {
    const std::string text = Text(json, key);
    std::string_view digits = text;
    if (digits == "(nil)" || digits == "nullptr") return 0;
    if (digits.starts_with("0x")) digits.remove_prefix(2);
    const auto address = ParseNumber<std::uint64_t>(digits, 16);
    if (!address) Fail(std::string(key) + " is no pointer: " + Quoted(text));
    return *address;
  }

  const std::string path_;
  const bool strict_;
  LineReader lines_;
  SkipLog log_;         // lines without a resource
  SortedJson process_;  // uid of the first line that has one
  // By name and by reference of an allocator: the name of its resource.
  std::unordered_map<std::string, std::string> resource_names_;
  std::vector<Resource> resources_;  // in the order of their first rows
  // Counts of allocate, in the form that logs a call and then its result.
  std::uint64_t calls_ = 0;
  std::uint64_t results_ = 0;
  std::uint64_t reallocations_ = 0;
};

}  // namespace

Trace ReadUmpireLog(InputBuffer& input, bool strict) {
  return UmpireLogReader(input, strict).Read();
}

}  // namespace strata::tools
