#include "strata/facade/settings/tf_environment.h"

#include <array>
#include <cstdlib>
#include <map>
#include <optional>
#include <span>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "strata/base/log.h"

namespace strata {
namespace {

// An option and the value that a variable sets it to.
using Setting = std::pair<const char*, std::string>;
using Settings = std::vector<Setting>;

// A known text of a variable and its value.
struct Meaning {
  const char* text;
  const char* value;
};

// The value of `text`, which is the text itself if there are no meanings.
std::string Translate(const std::string& text,
                      std::span<const Meaning> meanings) {
  if (meanings.empty()) return text;
  std::string known;
  for (const Meaning& meaning : meanings) {
    if (text == meaning.text) return meaning.value;
    known += (known.empty() ? "" : ", ") + std::string(meaning.text);
  }
  throw std::invalid_argument("it must be one of " + known);
}

// Exactly these texts, as in the original: there, too, "1" and "True" are
// errors.
constexpr std::array<Meaning, 2> kExactBool = {{
    {"true", "true"},
    {"false", "false"},
}};
constexpr std::array<Meaning, 4> kBool = {{
    {"true", "true"},
    {"1", "true"},
    {"false", "false"},
    {"0", "false"},
}};
// The values of bfc_allow_growth, which is the opposite of preallocation.
constexpr std::array<Meaning, 6> kPreallocate = {{
    {"true", "false"},
    {"True", "false"},
    {"1", "false"},
    {"false", "true"},
    {"False", "true"},
    {"0", "true"},
}};

constexpr std::array<Meaning, 4> kTfAllocators = {{
    {"BFC", "bfc"},
    {"cuda_malloc", "direct"},
    {"cuda_malloc_async", "cuda_malloc_async"},
    {"memory_guard", "bfc"},
}};
constexpr std::array<Meaning, 5> kXlaAllocators = {{
    {"default", "bfc"},
    {"bfc", "bfc"},
    {"platform", "direct"},
    {"cuda_async", "cuda_malloc_async"},
    {"vmm", "virtual_memory"},
}};

// Each way to set the limit replaces the others.
Settings SystemMemory(const std::string& text) {
  return {{"bfc_system_memory_in_mb", text},
          {"bfc_memory_fraction", ""},
          {"bfc_memory_limit", "0"}};
}

Settings Fraction(const std::string& text) {
  return {{"bfc_memory_fraction", text},
          {"bfc_system_memory_in_mb", "0"},
          {"bfc_memory_limit", "0"}};
}

Settings TfAllocator(const std::string& text) {
  Settings settings = {{"allocator_strategy", Translate(text, kTfAllocators)}};
  if (text == "memory_guard") {
    settings.emplace_back("strata_guard", "true");
    settings.emplace_back("strata_guard_fill", "nan");
  }
  return settings;
}

Settings AsyncPreallocation(const std::string& text) {
  if (text == "-1") {
    throw std::invalid_argument(
        "the whole pool cannot be taken at first: name a number of bytes");
  }
  return {{"cuda_malloc_async_preallocate", text}};
}

struct VariableRow {
  const char* variable;
  // Sets `option` to the meaning of the text, or has settings of its own.
  const char* option = nullptr;
  std::span<const Meaning> meanings = {};
  // Errors: std::invalid_argument with the reason.
  Settings (*settings)(const std::string& text) = nullptr;
  // The newer variable that replaces this one: both together are an error, even
  // if they agree. Null: none.
  const char* replaced_by = nullptr;

  Settings For(const std::string& text) const {
    if (settings != nullptr) return settings(text);
    return {{option, Translate(text, meanings)}};
  }
};

constexpr std::array<VariableRow, 12> kVariableRows = {{
    {"TF_FORCE_GPU_ALLOW_GROWTH", "bfc_allow_growth", kExactBool},
    {"TF_ENABLE_GPU_GARBAGE_COLLECTION", "bfc_garbage_collection", kExactBool},
    {.variable = "TF_GPU_ALLOCATOR", .settings = &TfAllocator},
    {"TF_BFC_MEMORY_DUMP", "bfc_memory_map_prefix"},
    {.variable = "TF_DEVICE_MIN_SYS_MEMORY_IN_MB", .settings = &SystemMemory},
    {"TF_FORCE_UNIFIED_MEMORY", "use_cuda_managed_memory", kBool},
    {.variable = "TF_CUDA_MALLOC_ASYNC_SUPPORTED_PREALLOC",
     .settings = &AsyncPreallocation},
    {"TF_DETERMINISTIC_ALLOCATOR", "cuda_malloc_async_deterministic", kBool},
    {"XLA_PYTHON_CLIENT_ALLOCATOR", "allocator_strategy", kXlaAllocators},
    {"XLA_PYTHON_CLIENT_PREALLOCATE", "bfc_allow_growth", kPreallocate},
    {.variable = "XLA_CLIENT_MEM_FRACTION", .settings = &Fraction},
    {.variable = "XLA_PYTHON_CLIENT_MEM_FRACTION",
     .settings = &Fraction,
     .replaced_by = "XLA_CLIENT_MEM_FRACTION"},
}};

// Returns `options` with all of `settings` applied.
//
// Errors: std::invalid_argument with the reason.
Options Apply(Options options, const Settings& settings) {
  for (const auto& [option, value] : settings) options.Set(option, value);
  options.Validate(/*strategy_was_set=*/false);
  for (const auto& [option, value] : settings) {
    if (std::string_view(option) == "allocator_strategy" &&
        options.Strategy() != value) {
      throw std::invalid_argument("an option that is an alias asks for " +
                                  options.Strategy());
    }
  }
  return options;
}

// The variable that set an option, and the value.
struct Setter {
  const char* variable;
  std::string value;
};

[[noreturn]] void Contradict(const char* variable, const char* other) {
  throw std::invalid_argument(std::string(variable) + " contradicts " + other +
                              ": unset one of the two variables");
}

// Reads the rows, one after the other.
class Reader {
 public:
  Reader(const Options& options, const EnvironmentLookup& lookup)
      : lookup_(lookup), original_(options) {
    result_.options = options;
  }

  void Read(const VariableRow& row) {
    const std::optional<std::string> text = TextOf(row.variable);
    if (!text) return;
    if (row.replaced_by != nullptr && TextOf(row.replaced_by)) {
      Contradict(row.variable, row.replaced_by);
    }
    Settings settings;
    Options changed;
    try {
      settings = row.For(*text);
      changed = Apply(result_.options, settings);
    } catch (const std::invalid_argument& error) {
      RefuseIfOthersContradict(row.variable, settings);
      result_.errors.push_back(std::string(row.variable) + ": '" + *text +
                               "' is not used: " + error.what());
      return;
    }
    Claim(row.variable, settings);
    heard_.push_back({row.variable, std::move(settings)});
    if (ToString(changed) != ToString(result_.options)) {
      NoteChange(row.variable, *text, heard_.back().settings);
    }
    result_.options = std::move(changed);
  }

  TfEnvironment Take() { return std::move(result_); }

 private:
  std::optional<std::string> TextOf(const char* variable) const {
    const char* text = lookup_(variable);
    if (text == nullptr || *text == '\0') return std::nullopt;
    return text;
  }

  // Throws if another variable is the reason that the settings do not fit the
  // options.
  void RefuseIfOthersContradict(const char* variable,
                                const Settings& settings) const {
    const auto goes_with = [&](const Options& options) {
      try {
        Apply(options, settings);
        return true;
      } catch (const std::invalid_argument&) {
        return false;
      }
    };
    if (!goes_with(original_)) return;
    for (const Heard& other : heard_) {
      if (!goes_with(Apply(original_, other.settings))) {
        Contradict(other.variable, variable);
      }
    }
  }

  // Assigns the settings to this variable, unless a variable that was read
  // before set an option to another value.
  void Claim(const char* variable, const Settings& settings) {
    for (const auto& [option, value] : settings) {
      const auto [at, is_new] = setters_.try_emplace(option);
      if (!is_new && at->second.value != value) {
        Contradict(at->second.variable, variable);
      }
      at->second = {variable, value};
    }
  }

  void NoteChange(const char* variable, const std::string& text,
                  const Settings& settings) {
    std::string note = std::string(variable) + "=" + text + ":";
    for (const auto& [option, value] : settings) {
      note += std::string(" ") + option + "=" + value;
    }
    result_.changes.push_back(std::move(note));
  }

  struct Heard {
    const char* variable;
    Settings settings;
  };

  const EnvironmentLookup& lookup_;
  const Options original_;
  std::vector<Heard> heard_;
  std::map<std::string, Setter> setters_;  // by option
  TfEnvironment result_;
};

}  // namespace

TfEnvironment WithTfEnvironment(const Options& options,
                                const EnvironmentLookup& lookup) {
  Reader reader(options, lookup);
  for (const VariableRow& row : kVariableRows) reader.Read(row);
  return reader.Take();
}

std::vector<std::string> TfEnvironmentVariables() {
  std::vector<std::string> variables;
  for (const VariableRow& row : kVariableRows) {
    variables.emplace_back(row.variable);
  }
  return variables;
}

Options WithProcessEnvironment(const Options& options) {
  if (!options.host.tf_environment) return options;
  TfEnvironment result = WithTfEnvironment(options, &std::getenv);
  for (const std::string& change : result.changes) {
    STRATA_LOG(Warning) << change;
  }
  for (const std::string& error : result.errors) STRATA_LOG(Error) << error;
  return std::move(result.options);
}

}  // namespace strata
