#include "strata/tools/readers/pickle/pickle_reader.h"

#include <cstdint>
#include <string>
#include <string_view>

#include "strata/base/quoted.h"
#include "strata/tools/readers/pickle/pickle_machine.h"
#include "strata/tools/readers/pickle/pickle_objects.h"
#include "strata/tools/readers/pickle/pickle_opcode.h"
#include "strata/tools/readers/pickle/pickle_source.h"

namespace strata::tools {
namespace {

using PickleKind = PickleValue::Kind;

// A context or a text of a user has some kilobytes.
constexpr std::uint64_t kMaxTextBytes = std::uint64_t{64} << 20;

// Runs the opcodes.
class PickleProgram {
 public:
  PickleProgram(InputBuffer& input, const PickleOptions& options)
      : options_(options), source_(input), machine_(source_, options_) {}

  PickleTree Run() {
    try {
      ReadProtocol();
      while (Step()) {
      }
      PickleTree tree = machine_.Finish();
      CountTrailing(tree);
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

  // Returns false at STOP.
  bool Step() {
    source_.BeginOpcode();
    if (!source_.Available(1)) source_.Fail("the file ends before STOP");
    const PickleOpcode opcode = source_.TakeOpcode();
    if (opcode == PickleOpcode::kStop) return false;
    if (DoScalar(opcode) || DoContainer(opcode) || DoStack(opcode)) return true;
    const bool is_done =
        options_.allows_objects && DoObjectOpcode(opcode, source_, machine_);
    if (!is_done) Refuse(opcode);
    return true;
  }

  void CountTrailing(PickleTree& tree) {
    source_.BeginOpcode();
    const std::uint64_t end = source_.offset();
    while (source_.Available(1)) {
      if (!options_.allows_objects) source_.Fail("more data after STOP");
      source_.Skip(source_.Peek(1 << 16).size());
    }
    tree.SetBytes(source_.offset(), source_.offset() - end);
  }

  bool DoScalar(PickleOpcode opcode);
  bool DoContainer(PickleOpcode opcode);
  bool DoStack(PickleOpcode opcode);
  [[noreturn]] void Refuse(PickleOpcode opcode);

  void PushText(std::uint64_t bytes) {
    if (bytes > kMaxTextBytes && options_.allows_objects) {
      return PushBytes(bytes);
    }
    if (bytes > kMaxTextBytes) {
      source_.Fail("a text of " + std::to_string(bytes) + " bytes");
    }
    machine_.PushText(source_.Take(bytes));
  }
  void PushBytes(std::uint64_t bytes) {
    source_.Skip(bytes);
    machine_.Push({PickleKind::kBytes, 0});
  }

  const PickleOptions& options_;
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
      // Contains only the number of bytes that a stream reader should fetch.
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

void PickleProgram::Refuse(PickleOpcode opcode) {
  const std::string name = ObjectName(opcode, source_, machine_);
  const std::string reason = PickleOpcodeRefusal(opcode);
  source_.Fail(name.empty() ? reason : Quoted(name) + " " + reason);
}

}  // namespace

PickleTree ReadPickle(InputBuffer& input, const PickleOptions& options) {
  return PickleProgram(input, options).Run();
}

}  // namespace strata::tools
