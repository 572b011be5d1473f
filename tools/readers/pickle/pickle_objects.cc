#include "strata/tools/readers/pickle/pickle_objects.h"

#include <cstddef>
#include <optional>
#include <string_view>

namespace strata::tools {
namespace {

// For GLOBAL and INST: the next two lines.
std::string NameInLines(PickleSource& source) {
  std::string name(source.Peek(80));
  const std::size_t first = name.find('\n');
  if (first == std::string::npos) return "";
  name[first] = '.';
  return name.substr(0, name.find('\n'));
}

// For STACK_GLOBAL: two texts on the stack.
std::string NameOnStack(const PickleMachine& machine) {
  const std::string_view module = machine.TextBelowTop(1);
  const std::string_view name = machine.TextBelowTop(0);
  if (module.data() == nullptr || name.data() == nullptr) return "";
  std::string both(module);
  both += ".";
  return both.append(name);
}

// Skips the bytes after an opcode that identify the object.
void SkipOperand(PickleOpcode opcode, PickleSource& source) {
  switch (opcode) {
    case PickleOpcode::kGlobal:
    case PickleOpcode::kInst:
      source.SkipLine();
      source.SkipLine();
      return;
    case PickleOpcode::kPersid:
      return source.SkipLine();
    case PickleOpcode::kExt1:
      return source.Skip(1);
    case PickleOpcode::kExt2:
      return source.Skip(2);
    case PickleOpcode::kExt4:
      return source.Skip(4);
    default:
      return;
  }
}

// The values on the stack that an object replaces. Nothing if `opcode` creates
// none.
std::optional<PickleMachine::Arguments> ArgumentsOf(PickleOpcode opcode,
                                                    PickleMachine& machine) {
  switch (opcode) {
    case PickleOpcode::kGlobal:
    case PickleOpcode::kPersid:
    case PickleOpcode::kExt1:
    case PickleOpcode::kExt2:
    case PickleOpcode::kExt4:
    case PickleOpcode::kEmptySet:
    case PickleOpcode::kNextBuffer:
      return machine.Last(0);
    case PickleOpcode::kBinpersid:
    case PickleOpcode::kReadonlyBuffer:
      return machine.Last(1);
    case PickleOpcode::kStackGlobal:
    case PickleOpcode::kReduce:
    case PickleOpcode::kNewobj:
    case PickleOpcode::kBuild:
      return machine.Last(2);
    case PickleOpcode::kNewobjEx:
      return machine.Last(3);
    case PickleOpcode::kInst:
    case PickleOpcode::kObj:
    case PickleOpcode::kFrozenset:
      return machine.SinceMark();
    default:
      return std::nullopt;
  }
}

}  // namespace

bool DoObjectOpcode(PickleOpcode opcode, PickleSource& source,
                    PickleMachine& machine) {
  if (opcode == PickleOpcode::kAdditems) {
    machine.Drop(machine.SinceMark());
    return true;
  }
  if (opcode == PickleOpcode::kDup) {
    machine.Dup();
    return true;
  }
  const std::string name = ObjectName(opcode, source, machine);
  SkipOperand(opcode, source);
  const auto arguments = ArgumentsOf(opcode, machine);
  if (!arguments) return false;
  machine.MakeObject(*arguments, name);
  return true;
}

std::string ObjectName(PickleOpcode opcode, PickleSource& source,
                       const PickleMachine& machine) {
  switch (opcode) {
    case PickleOpcode::kGlobal:
    case PickleOpcode::kInst:
      return NameInLines(source);
    case PickleOpcode::kStackGlobal:
      return NameOnStack(machine);
    default:
      return "";
  }
}

}  // namespace strata::tools
