#include "strata/tools/readers/pickle/pickle_opcode.h"

#include <array>
#include <cstdio>

namespace strata::tools {
namespace {

enum class Treatment { kData, kForeign, kProtocol0, kOther };

struct OpcodeRow {
  PickleOpcode opcode;
  const char* name;
  Treatment treatment;
};

constexpr OpcodeRow kOpcodeRows[] = {
#define STRATA_PICKLE_OPCODE(name, official, byte, treatment) \
  {PickleOpcode::k##name, #official, Treatment::k##treatment},
#include "strata/tools/readers/pickle/pickle_opcodes.def"
#undef STRATA_PICKLE_OPCODE
};

const OpcodeRow* Find(PickleOpcode opcode) {
  for (const OpcodeRow& row : kOpcodeRows) {
    if (row.opcode == opcode) return &row;
  }
  return nullptr;
}

}  // namespace

std::string PickleOpcodeName(PickleOpcode opcode) {
  const OpcodeRow* row = Find(opcode);
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), "%s (0x%02x)",
                row == nullptr ? "opcode" : row->name,
                static_cast<unsigned>(opcode));
  return text.data();
}

const char* PickleOpcodeRefusal(PickleOpcode opcode) {
  const OpcodeRow* row = Find(opcode);
  if (row == nullptr) return "pickle has no such opcode";
  switch (row->treatment) {
    case Treatment::kForeign:
      return "reaches outside the file; a snapshot is plain data";
    case Treatment::kProtocol0:
      return "is of protocol 0; protocols 2 to 5 are read";
    case Treatment::kData:
    case Treatment::kOther:
      break;
  }
  return "has no place in a snapshot";
}

}  // namespace strata::tools
