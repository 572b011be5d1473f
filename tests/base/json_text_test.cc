#include "strata/base/json_text.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <string>
#include <vector>

namespace strata {
namespace {

struct Spelling {
  std::string text;
  std::string json;
};

const std::vector<Spelling>& Spellings() {
  static const auto* const rows = new std::vector<Spelling>{
      {"", R"("")"},
      {"train{step=3} / MatMul", R"("train{step=3} / MatMul")"},
      {R"(say "hi" \ bye)", R"("say \"hi\" \\ bye")"},
      {"a\nb\tc", R"("a\u000ab\u0009c")"},
      {std::string(1, '\0') + "\x1f\x7f", "\"\\u0000\\u001f\x7f\""},
      {"caf\xC3\xA9 \xE2\x82\xAC \xF0\x9F\x98\x80",
       "\"caf\xC3\xA9 \xE2\x82\xAC \xF0\x9F\x98\x80\""},
  };
  return *rows;
}

TEST(JsonTextTest, EscapesWhatJsonReserves) {
  for (const Spelling& row : Spellings()) {
    EXPECT_EQ(JsonString(row.text), row.json);
  }
}

TEST(JsonTextTest, ReplacesBytesThatAreNotUtf8) {
  const std::string bad = R"(\ufffd)";
  for (const Spelling& row : std::vector<Spelling>{
           {"\x80", bad},                                // a continuation alone
           {"\xC0\xAF", bad + bad},                      // too long a form
           {"\xE0\x9F\xBF", bad + bad + bad},            // likewise
           {"\xED\xA0\x80", bad + bad + bad},            // a surrogate
           {"\xF4\x90\x80\x80", bad + bad + bad + bad},  // beyond U+10FFFF
           {"\xF5", bad},
           {"\xE2\x82", bad + bad},  // cut short
           {"\xE2\x82(", bad + bad + "("},
           {"\xC3", bad},
       }) {
    EXPECT_EQ(JsonString(row.text), "\"" + row.json + "\"");
  }
}

TEST(JsonTextTest, WritesTheSameToAFile) {
  for (const Spelling& row : Spellings()) {
    std::FILE* file = std::tmpfile();
    ASSERT_NE(file, nullptr);
    WriteJsonString(file, row.text);
    std::rewind(file);
    std::string written(row.json.size() + 8, '\0');
    written.resize(std::fread(written.data(), 1, written.size(), file));
    std::fclose(file);
    EXPECT_EQ(written, row.json);
  }
}

}  // namespace
}  // namespace strata
