#include "strata/tools/pickle_reader.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "strata/platform/quoted.h"
#include "strata/tools/pickle_machine.h"
#include "strata/tools/pickle_opcode.h"
#include "strata/tools/pickle_source.h"

namespace strata {
namespace {

using PickleKind = PickleValue::Kind;

// A context or a text of a user is some kilobytes.
constexpr std::uint64_t kMaxTextBytes = std::uint64_t{64} << 20;

// What each opcode does.
class PickleProgram {
 public:
  PickleProgram(InputBuffer& input, const PickleOptions& options)
      : source_(input), machine_(source_, options) {}

  PickleTree Run() {
    try {
      ReadProtocol();
      while (Step()) {
      }
      PickleTree tree = machine_.Finish();
      source_.BeginOpcode();
      if (source_.Available(1)) source_.Fail("more data after STOP");
      return tree;
    } catch (const InputError& error) {
      source_.AtEndOfInput();
      source_.Fail(error.what());
    }
  }

 private:
  void ReadProtocol() {
    const std::string_view first = source_.Peek(1);
    if (first.empty()) source_.Fail("the file is empty");
    if (static_cast<PickleOpcode>(first.front()) != PickleOpcode::kProto) {
      source_.Fail("a pickle of protocol 2 to 5 begins with PROTO (0x80)");
    }
  }

  // False at STOP.
  bool Step() {
    source_.BeginOpcode();
    if (!source_.Available(1)) source_.Fail("the file ends before STOP");
    const PickleOpcode opcode = source_.TakeOpcode();
    if (opcode == PickleOpcode::kStop) return false;
    if (!DoScalar(opcode) && !DoContainer(opcode) && !DoStack(opcode)) {
      Refuse(opcode);
    }
    return true;
  }

  bool DoScalar(PickleOpcode opcode);
  bool DoContainer(PickleOpcode opcode);
  bool DoStack(PickleOpcode opcode);
  [[noreturn]] void Refuse(PickleOpcode opcode);

  void PushText(std::uint64_t bytes) {
    if (bytes > kMaxTextBytes) {
      source_.Fail("a text of " + std::to_string(bytes) + " bytes");
    }
    machine_.PushText(source_.Take(bytes));
  }
  void PushBytes(std::uint64_t bytes) {
    source_.Skip(bytes);
    machine_.Push({PickleKind::kBytes, 0});
  }

  PickleSource source_;
  PickleMachine machine_;
};

bool PickleProgram::DoScalar(PickleOpcode opcode) {
  switch (opcode) {
    case PickleOpcode::kNone:
      machine_.Push({PickleKind::kNone, 0});
      return true;
    case PickleOpcode::kNewtrue:
      machine_.Push({PickleKind::kBool, 1});
      return true;
    case PickleOpcode::kNewfalse:
      machine_.Push({PickleKind::kBool, 0});
      return true;
    case PickleOpcode::kBinint:
      machine_.Push(source_.Long(4));
      return true;
    case PickleOpcode::kBinint1:
      machine_.Push({PickleKind::kUnsigned, source_.Number(1)});
      return true;
    case PickleOpcode::kBinint2:
      machine_.Push({PickleKind::kUnsigned, source_.Number(2)});
      return true;
    case PickleOpcode::kLong1:
      machine_.Push(source_.Long(source_.Number(1)));
      return true;
    case PickleOpcode::kLong4: {
      const std::uint64_t bytes = source_.Number(4);
      if (bytes > INT32_MAX) source_.Fail("the length is negative");
      machine_.Push(source_.Long(bytes));
      return true;
    }
    case PickleOpcode::kBinfloat:
      source_.Skip(8);
      machine_.Push({PickleKind::kFloat, 0});
      return true;
    case PickleOpcode::kShortBinunicode:
      PushText(source_.Number(1));
      return true;
    case PickleOpcode::kBinunicode:
      PushText(source_.Number(4));
      return true;
    case PickleOpcode::kBinunicode8:
      PushText(source_.Number(8));
      return true;
    case PickleOpcode::kShortBinstring:
    case PickleOpcode::kShortBinbytes:
      PushBytes(source_.Number(1));
      return true;
    case PickleOpcode::kBinstring:
    case PickleOpcode::kBinbytes:
      PushBytes(source_.Number(4));
      return true;
    case PickleOpcode::kBinbytes8:
    case PickleOpcode::kBytearray8:
      PushBytes(source_.Number(8));
      return true;
    default:
      return false;
  }
}

bool PickleProgram::DoContainer(PickleOpcode opcode) {
  switch (opcode) {
    case PickleOpcode::kEmptyList:
      machine_.PushEmpty(PickleKind::kList);
      return true;
    case PickleOpcode::kEmptyDict:
      machine_.PushEmpty(PickleKind::kDict);
      return true;
    case PickleOpcode::kEmptyTuple:
      machine_.PushEmpty(PickleKind::kTuple);
      return true;
    case PickleOpcode::kList:
      machine_.MakeOf(PickleKind::kList, machine_.SinceMark());
      return true;
    case PickleOpcode::kDict:
      machine_.MakeOf(PickleKind::kDict, machine_.SinceMark());
      return true;
    case PickleOpcode::kTuple:
      machine_.MakeOf(PickleKind::kTuple, machine_.SinceMark());
      return true;
    case PickleOpcode::kTuple1:
      machine_.MakeOf(PickleKind::kTuple, machine_.Last(1));
      return true;
    case PickleOpcode::kTuple2:
      machine_.MakeOf(PickleKind::kTuple, machine_.Last(2));
      return true;
    case PickleOpcode::kTuple3:
      machine_.MakeOf(PickleKind::kTuple, machine_.Last(3));
      return true;
    case PickleOpcode::kAppend:
      machine_.AddTo(PickleKind::kList, machine_.Last(1));
      return true;
    case PickleOpcode::kAppends:
      machine_.AddTo(PickleKind::kList, machine_.SinceMark());
      return true;
    case PickleOpcode::kSetitem:
      machine_.AddTo(PickleKind::kDict, machine_.Last(2));
      return true;
    case PickleOpcode::kSetitems:
      machine_.AddTo(PickleKind::kDict, machine_.SinceMark());
      return true;
    default:
      return false;
  }
}

bool PickleProgram::DoStack(PickleOpcode opcode) {
  switch (opcode) {
    case PickleOpcode::kProto: {
      const std::uint64_t protocol = source_.Number(1);
      if (protocol < 2 || protocol > 5) {
        source_.Fail("protocol " + std::to_string(protocol) +
                     "; 2 to 5 are read");
      }
      return true;
    }
    case PickleOpcode::kFrame:
      // Tells a reader of streams how much to fetch, and nothing else.
      source_.Skip(8);
      return true;
    case PickleOpcode::kMark:
      machine_.Mark();
      return true;
    case PickleOpcode::kPop:
      machine_.PopValueOrMark();
      return true;
    case PickleOpcode::kPopMark:
      machine_.Drop(machine_.SinceMark());
      return true;
    case PickleOpcode::kBinput:
      machine_.Put(source_.Number(1));
      return true;
    case PickleOpcode::kLongBinput:
      machine_.Put(source_.Number(4));
      return true;
    case PickleOpcode::kMemoize:
      machine_.PutNext();
      return true;
    case PickleOpcode::kBinget:
      machine_.Get(source_.Number(1));
      return true;
    case PickleOpcode::kLongBinget:
      machine_.Get(source_.Number(4));
      return true;
    default:
      return false;
  }
}

// What GLOBAL names, "module.name"; "" if the name is not to be seen.
std::string GlobalName(PickleSource& source) {
  std::string name(source.Peek(80));
  const std::size_t first = name.find('\n');
  if (first == std::string::npos) return "";
  name[first] = '.';
  return name.substr(0, name.find('\n'));
}

// The same of STACK_GLOBAL.
std::string StackGlobalName(const PickleMachine& machine) {
  const std::string_view module = machine.TextBelowTop(1);
  const std::string_view name = machine.TextBelowTop(0);
  if (module.data() == nullptr || name.data() == nullptr) return "";
  std::string both(module);
  both += ".";
  return both.append(name);
}

void PickleProgram::Refuse(PickleOpcode opcode) {
  std::string name;
  if (opcode == PickleOpcode::kGlobal) name = GlobalName(source_);
  if (opcode == PickleOpcode::kStackGlobal) name = StackGlobalName(machine_);
  const std::string reason = PickleOpcodeRefusal(opcode);
  source_.Fail(name.empty() ? reason : Quoted(name) + " " + reason);
}

}  // namespace

PickleTree ReadPickle(InputBuffer& input, const PickleOptions& options) {
  return PickleProgram(input, options).Run();
}

}  // namespace strata
