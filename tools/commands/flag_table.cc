#include "strata/tools/commands/flag_table.h"

#include <algorithm>
#include <cctype>
#include <string_view>

#include "strata/facade/options.h"

namespace strata::tools {
namespace {

constexpr const char* kHead =
    R"(# Flags

Made by `strata info --format=flags`; a test compares. Each flag is also an option of `Options::Parse` and of the C ABI. Programs that take their options from
flags (`OptionsFromFlags`, as `strata` does) read one that the command line does not give from the environment, as `FLAGS_<name>`; `Options::Parse` and the
C ABI read no such variables.

| flag | type | default | meaning |
|---|---|---|---|
)";

constexpr const char* kRemoved =
    R"(
## Flags that have no effect any more

Each is accepted, as a flag and as an option, with one warning.

| flag | no longer, because |
|---|---|
)";

constexpr const char* kWithout =
    R"(
## Flags of PaddlePaddle that have no counterpart

Every other flag of PaddlePaddle that touches memory is in the table above, with its name, default and meaning.

| flag | its default | why not |
|---|---|---|
)";

// Escapes text for a cell of a table.
std::string Cell(std::string_view text) {
  std::string cell;
  for (const char c : text) cell += c == '|' ? "\\|" : std::string(1, c);
  return cell;
}

std::string Code(std::string_view text) {
  if (text.empty()) return "";
  // Appended one by one: g++ 12 warns about a sum that begins with a literal.
  std::string code = "`";
  code += Cell(text);
  code += '`';
  return code;
}

std::string LowerCase(std::string_view text) {
  std::string lower(text);
  std::transform(
      lower.begin(), lower.end(), lower.begin(),
      [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return lower;
}

}  // namespace

std::vector<PaddleFlag> PaddleFlags() {
  return {
#define STRATA_PADDLE_FLAG(name, default_value, why_not) \
  PaddleFlag{#name, default_value, why_not},
#include "strata/tools/commands/paddle_flags.def"
#undef STRATA_PADDLE_FLAG
  };
}

std::string FlagsMarkdown() {
  std::string text = kHead;
  for (const OptionInfo& option : OptionTable()) {
    text += "| `--" + std::string(option.name) + "` | " +
            LowerCase(option.type) + " | " + Code(option.default_value) +
            " | " + Cell(option.help) + " |\n";
  }
  text += kRemoved;
  for (const RemovedOption& option : RemovedOptions()) {
    text +=
        "| `--" + std::string(option.name) + "` | " + Cell(option.why) + " |\n";
  }
  text += kWithout;
  for (const PaddleFlag& flag : PaddleFlags()) {
    if (std::string_view(flag.why_not).empty()) continue;
    text += "| `--" + std::string(flag.name) + "` | " +
            Code(flag.default_value) + " | " + Cell(flag.why_not) + " |\n";
  }
  return text;
}

}  // namespace strata::tools
