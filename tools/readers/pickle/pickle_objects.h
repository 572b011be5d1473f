#ifndef STRATA_TOOLS_READERS_PICKLE_PICKLE_OBJECTS_H_
#define STRATA_TOOLS_READERS_PICKLE_PICKLE_OBJECTS_H_

#include <string>

#include "strata/tools/readers/pickle/pickle_machine.h"
#include "strata/tools/readers/pickle/pickle_opcode.h"
#include "strata/tools/readers/pickle/pickle_source.h"

namespace strata::tools {

// The opcodes of a pickle that name or create an object of Python. Nothing is
// imported, called or created: a value without content represents the object.

// Runs `opcode`. False, and nothing is done, if it is no such opcode.
//
// Errors: TraceError, as PickleMachine.
bool DoObjectOpcode(PickleOpcode opcode, PickleSource& source,
                    PickleMachine& machine);

// The class or function that `opcode`, which has not run yet, refers to:
// "module.name". "" if it names none, or the name is not available.
std::string ObjectName(PickleOpcode opcode, PickleSource& source,
                       const PickleMachine& machine);

}  // namespace strata::tools

#endif  // STRATA_TOOLS_READERS_PICKLE_PICKLE_OBJECTS_H_
