#include "strata/tools/readers/pickle/pickle_source.h"

#include <algorithm>

#include "strata/tools/trace/trace.h"

namespace strata::tools {

void PickleSource::Fail(const std::string& reason) const {
  throw TraceError(input_.path(), 0, Place() + reason);
}

std::string PickleSource::Place() const {
  std::string text = "offset " + std::to_string(offset_of_opcode_) + ": ";
  if (opcode_) text += PickleOpcodeName(*opcode_) + ": ";
  return text;
}

bool PickleSource::Available(std::uint64_t bytes) {
  while (input_.size() < bytes) {
    if (input_.Fill()) continue;
    if (input_.is_cut()) throw InputError(kGzipCutReason);
    return false;
  }
  return true;
}

std::string_view PickleSource::Peek(std::size_t most) {
  Available(most);
  return {input_.data(), std::min(input_.size(), most)};
}

std::string_view PickleSource::Take(std::uint64_t bytes) {
  if (!Available(bytes)) Fail("the file ends inside it");
  const std::string_view taken(input_.data(), bytes);
  input_.Consume(bytes);
  offset_ += bytes;
  return taken;
}

void PickleSource::Skip(std::uint64_t bytes) {
  while (bytes > 0) {
    if (!Available(1)) Fail("the file ends inside it");
    const std::uint64_t part = std::min<std::uint64_t>(bytes, input_.size());
    input_.Consume(part);
    offset_ += part;
    bytes -= part;
  }
}

void PickleSource::SkipLine() {
  while (Take(1).front() != '\n') {
  }
}

std::uint64_t PickleSource::Number(std::size_t bytes) {
  std::uint64_t number = 0;
  const std::string_view taken = Take(bytes);
  for (std::size_t i = 0; i < bytes; ++i) {
    number |= std::uint64_t{static_cast<unsigned char>(taken[i])} << (8 * i);
  }
  return number;
}

PickleValue PickleSource::Long(std::uint64_t bytes) {
  using Kind = PickleValue::Kind;
  if (bytes > 16) {
    Skip(bytes);
    return {Kind::kHuge, 0};
  }
  const std::string_view taken = Take(bytes);
  if (taken.empty()) return {Kind::kUnsigned, 0};
  const bool is_negative =
      (static_cast<unsigned char>(taken.back()) & 0x80U) != 0;
  const char padding = is_negative ? '\xff' : '\0';
  std::uint64_t number = 0;
  bool fits = true;
  for (std::size_t i = 0; i < std::max<std::size_t>(bytes, 8); ++i) {
    const char byte = i < bytes ? taken[i] : padding;
    if (i < 8) {
      number |= std::uint64_t{static_cast<unsigned char>(byte)} << (8 * i);
    } else {
      fits = fits && byte == padding;
    }
  }
  // The sign is beyond the remaining 64 bits, unless they include it.
  fits = fits && (!is_negative || number >> 63 == 1);
  if (!fits) return {Kind::kHuge, 0};
  return {is_negative ? Kind::kNegative : Kind::kUnsigned, number};
}

}  // namespace strata::tools
