#ifndef STRATA_EXAMPLES_ARGUMENTS_H_
#define STRATA_EXAMPLES_ARGUMENTS_H_

#include <charconv>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

// The only argument as a number; `otherwise` if there are no arguments; nothing
// if they are not exactly one number.
inline std::optional<int> OnlyNumber(const std::vector<std::string>& arguments,
                                     int otherwise) {
  if (arguments.empty()) return otherwise;
  if (arguments.size() > 1) return std::nullopt;
  int number = 0;
  const char* end = arguments[0].data() + arguments[0].size();
  const auto [stop, error] = std::from_chars(arguments[0].data(), end, number);
  if (error != std::errc() || stop != end) return std::nullopt;
  return number;
}

#endif  // STRATA_EXAMPLES_ARGUMENTS_H_
