#include "strata/base/json_text.h"

#include <array>
#include <cstddef>

namespace strata {
namespace {

constexpr std::string_view kReplacement = "\\ufffd";

unsigned Byte(std::string_view text, std::size_t at) {
  return static_cast<unsigned char>(text[at]);
}

// Length in bytes of a UTF-8 character by its first byte; 0 if no character
// starts with it.
std::size_t Utf8Length(unsigned first) {
  if (first < 0x80) return 1;
  if (first < 0xC2) return 0;  // a continuation, or an overlong form
  if (first < 0xE0) return 2;
  if (first < 0xF0) return 3;
  return first < 0xF5 ? 4 : 0;  // larger values exceed U+10FFFF
}

// True if `second` may follow `first`. Other values encode an overlong form, a
// surrogate, or a number beyond U+10FFFF.
bool MayFollow(unsigned first, unsigned second) {
  switch (first) {
    case 0xE0:
      return second >= 0xA0 && second <= 0xBF;
    case 0xED:
      return second >= 0x80 && second <= 0x9F;
    case 0xF0:
      return second >= 0x90 && second <= 0xBF;
    case 0xF4:
      return second >= 0x80 && second <= 0x8F;
    default:
      return second >= 0x80 && second <= 0xBF;
  }
}

// Length of the first character of `text`; 0 if it is not UTF-8.
std::size_t CharacterLength(std::string_view text) {
  const std::size_t length = Utf8Length(Byte(text, 0));
  if (length > text.size()) return 0;
  if (length > 1 && !MayFollow(Byte(text, 0), Byte(text, 1))) return 0;
  for (std::size_t i = 2; i < length; ++i) {
    if (Byte(text, i) < 0x80 || Byte(text, i) > 0xBF) return 0;
  }
  return length;
}

bool IsPlain(unsigned character) {
  return character >= 0x20 && character != '"' && character != '\\';
}

// Removes the first character of `text` and returns its JSON spelling, which
// may be stored in `room`.
std::string_view TakeCharacter(std::string_view& text,
                               std::array<char, 6>& room) {
  const unsigned first = Byte(text, 0);
  const std::size_t length = CharacterLength(text);
  const std::string_view taken = text.substr(0, length == 0 ? 1 : length);
  text.remove_prefix(taken.size());
  if (length == 0) return kReplacement;
  if (IsPlain(first)) return taken;
  if (first >= 0x20) {
    room = {'\\', static_cast<char>(first)};
    return {room.data(), 2};
  }
  static constexpr std::string_view kDigits = "0123456789abcdef";
  room = {'\\', 'u', '0', '0', kDigits[first >> 4], kDigits[first & 0xF]};
  return {room.data(), room.size()};
}

}  // namespace

std::string JsonString(std::string_view text) {
  std::string json = "\"";
  std::array<char, 6> room{};
  while (!text.empty()) json += TakeCharacter(text, room);
  return json + '"';
}

void WriteJsonString(std::FILE* file, std::string_view text) noexcept {
  std::fputc('"', file);
  std::array<char, 6> room{};
  while (!text.empty()) {
    const std::string_view piece = TakeCharacter(text, room);
    std::fwrite(piece.data(), 1, piece.size(), file);
  }
  std::fputc('"', file);
}

}  // namespace strata
