#ifndef STRATA_TOOLS_PICKLE_OBJECTS_H_
#define STRATA_TOOLS_PICKLE_OBJECTS_H_

#include <string>

#include "strata/tools/pickle_machine.h"
#include "strata/tools/pickle_opcode.h"
#include "strata/tools/pickle_source.h"

namespace strata {

// The opcodes of a pickle that name or make an object of Python. Nothing is
// imported, called or made: a value without content stands for the object.

// Does `opcode`. False, and nothing happens, if it is no such opcode.
//
// Errors: TraceError, as PickleMachine.
bool DoObjectOpcode(PickleOpcode opcode, PickleSource& source,
                    PickleMachine& machine);

// The class or function that `opcode`, which is not done yet, asks for:
// "module.name"; "" if it names none, or the name is not to be seen.
std::string ObjectName(PickleOpcode opcode, PickleSource& source,
                       const PickleMachine& machine);

}  // namespace strata

#endif  // STRATA_TOOLS_PICKLE_OBJECTS_H_
