#ifndef STRATA_TOOLS_TERMINAL_DUMP_JSON_H_
#define STRATA_TOOLS_TERMINAL_DUMP_JSON_H_

#include <nlohmann/json.hpp>
#include <string>

namespace strata::tools {

// JSON for the output of a command. A path in it may not be UTF-8; invalid
// bytes are replaced.
template <class Json>
std::string DumpJson(const Json& json) {
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}
// DumpJson on one line.
template <class Json>
std::string DumpJsonLine(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace strata::tools

#endif  // STRATA_TOOLS_TERMINAL_DUMP_JSON_H_
