#ifndef STRATA_TOOLS_READERS_PICKLE_PICKLE_OPCODE_H_
#define STRATA_TOOLS_READERS_PICKLE_PICKLE_OPCODE_H_

#include <cstdint>
#include <string>

namespace strata::tools {

// The opcodes of pickle.
enum class PickleOpcode : std::uint8_t {
#define STRATA_PICKLE_OPCODE(name, official, byte, treatment) k##name = (byte),
#include "strata/tools/readers/pickle/pickle_opcodes.def"
#undef STRATA_PICKLE_OPCODE
};

// For errors: "REDUCE (0x52)", and the reason why it is refused, if it is.
std::string PickleOpcodeName(PickleOpcode opcode);
const char* PickleOpcodeRefusal(PickleOpcode opcode);

}  // namespace strata::tools

#endif  // STRATA_TOOLS_READERS_PICKLE_PICKLE_OPCODE_H_
