#ifndef STRATA_BASE_JSON_TEXT_H_
#define STRATA_BASE_JSON_TEXT_H_

#include <cstdio>
#include <string>
#include <string_view>

#include "strata/base/require_cxx20.h"

namespace strata {

// Returns `text` as a JSON string with quotes. Bytes that are not UTF-8 become
// U+FFFD.
//
// Source: RFC 8259 §7, §8.1.
std::string JsonString(std::string_view text);

// Writes the same string to `file` without a heap call. Errors are stored in
// `file`.
void WriteJsonString(std::FILE* file, std::string_view text) noexcept;

}  // namespace strata

#endif  // STRATA_BASE_JSON_TEXT_H_
