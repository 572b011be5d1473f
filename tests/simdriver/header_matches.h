#ifndef STRATA_TESTS_SIMDRIVER_HEADER_MATCHES_H_
#define STRATA_TESTS_SIMDRIVER_HEADER_MATCHES_H_

#include <fstream>
#include <regex>
#include <sstream>
#include <string>

namespace strata {

// Calls `body(match)` for each match of `pattern` in the header `name` of the
// toolkit, and returns their number.
template <class Body>
int ForEachMatch(const std::string& name, const char* pattern, Body body) {
  std::ifstream file(std::string(STRATA_CUDA_HEADERS) + "/" + name);
  std::stringstream stream;
  stream << file.rdbuf();
  const std::string text = stream.str();
  const std::regex regex(pattern);
  int count = 0;
  for (std::sregex_iterator at(text.begin(), text.end(), regex), end; at != end;
       ++at) {
    body(*at);
    ++count;
  }
  return count;
}

}  // namespace strata

#endif  // STRATA_TESTS_SIMDRIVER_HEADER_MATCHES_H_
