#ifndef STRATA_TOOLS_DUMP_JSON_H_
#define STRATA_TOOLS_DUMP_JSON_H_

#include <nlohmann/json.hpp>
#include <string>

namespace strata {

// What a command prints. A path in it need not be UTF-8, JSON is.
template <class Json>
std::string DumpJson(const Json& json) {
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}
// The same on one line.
template <class Json>
std::string DumpJsonLine(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace strata

#endif  // STRATA_TOOLS_DUMP_JSON_H_
