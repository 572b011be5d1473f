#include "strata/tools/pickle_reader.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "strata/allocation/size.h"
#include "strata/tools/pickle_opcode.h"
#include "strata/tools/quoted.h"
#include "strata/tools/trace.h"

namespace strata {

using Kind = PickleValue::Kind;

// The stack machine that a pickle is a program for.
class PickleMachine {
 public:
  PickleMachine(InputBuffer& input, const PickleOptions& options)
      : input_(input), options_(options) {}

  PickleTree Run() {
    try {
      ReadProtocol();
      while (Step()) {
      }
      offset_of_opcode_ = offset_;
      opcode_.reset();
      if (Available(1)) Fail("more data after STOP");
    } catch (const InputError& error) {
      offset_of_opcode_ = offset_ + input_.size();
      opcode_.reset();
      Fail(error.what());
    }
    return std::move(tree_);
  }

 private:
  // A memo entry that was not set.
  static constexpr PickleValue kUnset{Kind::kNone, UINT64_MAX};
  // A context or a text of a user is some kilobytes.
  static constexpr std::uint64_t kMaxTextBytes = std::uint64_t{64} << 20;

  struct Arguments {
    std::size_t at;     // on the stack, of the first
    std::size_t count;  // to the top
  };

  [[noreturn]] void Fail(const std::string& reason) const {
    std::string text = "offset " + std::to_string(offset_of_opcode_) + ": ";
    if (opcode_) text += PickleOpcodeName(*opcode_) + ": ";
    throw TraceError(input_.path(), 0, text += reason);
  }

  // Counts what the tree takes.
  void Charge(std::uint64_t bytes) {
    used_bytes_ += bytes;
    if (used_bytes_ > options_.max_bytes) {
      Fail("the values take more than " + HumanBytes(options_.max_bytes));
    }
  }

  // --- Bytes -------------------------------------------------------------

  bool Available(std::uint64_t bytes) {
    while (input_.size() < bytes) {
      if (!input_.Fill()) return false;
    }
    return true;
  }

  // Valid until the next bytes are taken.
  std::string_view Take(std::uint64_t bytes) {
    if (!Available(bytes)) Fail("the file ends inside it");
    const std::string_view taken(input_.data(), bytes);
    input_.Consume(bytes);
    offset_ += bytes;
    return taken;
  }

  void Skip(std::uint64_t bytes) {
    while (bytes > 0) {
      if (!Available(1)) Fail("the file ends inside it");
      const std::uint64_t part = std::min<std::uint64_t>(bytes, input_.size());
      input_.Consume(part);
      offset_ += part;
      bytes -= part;
    }
  }

  // An unsigned little-endian number.
  std::uint64_t Number(std::size_t bytes) {
    std::uint64_t number = 0;
    const std::string_view taken = Take(bytes);
    for (std::size_t i = 0; i < bytes; ++i) {
      number |= std::uint64_t{static_cast<unsigned char>(taken[i])} << (8 * i);
    }
    return number;
  }

  void ReadProtocol() {
    if (!Available(1)) Fail("the file is empty");
    if (static_cast<PickleOpcode>(*input_.data()) != PickleOpcode::kProto) {
      Fail("a pickle of protocol 2 to 5 begins with PROTO (0x80)");
    }
  }

  // --- The stack ---------------------------------------------------------

  void Push(PickleValue value) {
    stack_.push_back(value);
    if (stack_.size() > highest_) {
      highest_ = stack_.size();
      Charge(sizeof(PickleValue));
    }
  }

  // Values above the last mark; those below are another's.
  std::size_t Reachable() const {
    return stack_.size() - (marks_.empty() ? 0 : marks_.back());
  }

  PickleValue& Top() {
    if (Reachable() == 0) Fail("the stack is empty");
    return stack_.back();
  }

  PickleValue Pop() {
    const PickleValue value = Top();
    stack_.pop_back();
    return value;
  }

  Arguments Last(std::size_t count) const {
    if (Reachable() < count) Fail("the stack is empty");
    return {stack_.size() - count, count};
  }

  // What is above the last mark, which goes.
  Arguments SinceMark() {
    if (marks_.empty()) Fail("there is no mark");
    const std::size_t at = marks_.back();
    marks_.pop_back();
    return {at, stack_.size() - at};
  }

  void Drop(Arguments arguments) { stack_.resize(arguments.at); }

  // --- Containers --------------------------------------------------------

  PickleTree::Container& Of(PickleValue container) {
    return tree_.containers_[container.number];
  }

  PickleValue NewContainer(Kind kind) {
    Charge(sizeof(PickleTree::Container) + sizeof(void*));
    tree_.containers_.emplace_back();
    return {kind, tree_.containers_.size() - 1};
  }

  // The container below `arguments`, which are to go into it.
  //
  // What is part of another is complete: nothing that Python writes adds to it
  // unless it holds itself, so refusing that leaves no way to make a cycle.
  PickleValue Target(Arguments arguments, Kind kind) const {
    const std::size_t lowest = marks_.empty() ? 0 : marks_.back();
    if (arguments.at <= lowest) Fail("the stack is empty");
    const PickleValue target = stack_[arguments.at - 1];
    if (target.kind != kind) {
      Fail(std::string("adds to ") + PickleKindName(target.kind));
    }
    if (tree_.containers_[target.number].is_stored) {
      Fail("adds to a container that another one holds: a cycle");
    }
    return target;
  }

  void Store(PickleValue target, PickleValue item) {
    if (!item.IsContainer()) return;
    if (item.number == target.number) Fail("a container would hold itself");
    Of(item).is_stored = true;
  }

  void AddItems(PickleValue target, Arguments arguments) {
    Charge(arguments.count * sizeof(PickleValue));
    const auto from =
        stack_.begin() + static_cast<std::ptrdiff_t>(arguments.at);
    std::for_each(from, stack_.end(),
                  [&](PickleValue item) { Store(target, item); });
    std::vector<PickleValue>& items = Of(target).items;
    items.insert(items.end(), from, stack_.end());
    Drop(arguments);
  }

  bool IsAmong(const std::vector<std::string_view>& keys,
               PickleValue key) const {
    return key.kind == Kind::kText &&
           std::find(keys.begin(), keys.end(), tree_.Text(key)) != keys.end();
  }

  void DropItems(PickleValue container) {
    PickleTree::Container& dropped = Of(container);
    if (dropped.dropped_items != 0) return;
    dropped.dropped_items = dropped.items.size();
    dropped.items = std::vector<PickleValue>();
  }

  void SetItems(PickleValue target, Arguments arguments) {
    if (arguments.count % 2 != 0) Fail("a key without a value");
    const std::size_t end = arguments.at + arguments.count;
    for (std::size_t i = arguments.at; i < end; i += 2) {
      const PickleValue key = stack_[i];
      const PickleValue value = stack_[i + 1];
      if (key.kind == Kind::kList || key.kind == Kind::kDict) {
        Fail(std::string("a key is ") + PickleKindName(key.kind));
      }
      Store(target, key);
      Store(target, value);
      const bool is_counted = IsAmong(options_.counted_keys, key);
      const bool is_kept = is_counted || IsAmong(options_.keys, key);
      if (is_kept) {
        Charge(2 * sizeof(PickleValue));
        Of(target).items.push_back(key);
        Of(target).items.push_back(value);
      }
      if ((is_counted || !is_kept) && value.IsContainer()) DropItems(value);
    }
    Drop(arguments);
  }

  void MakeOf(Kind kind, Arguments arguments) {
    const PickleValue made = NewContainer(kind);
    if (kind == Kind::kDict) {
      SetItems(made, arguments);
    } else {
      AddItems(made, arguments);
    }
    Push(made);
  }

  void AddTo(Kind kind, Arguments arguments) {
    const PickleValue target = Target(arguments, kind);
    if (kind == Kind::kDict) {
      SetItems(target, arguments);
    } else {
      AddItems(target, arguments);
    }
  }

  // --- Scalars -----------------------------------------------------------

  // Of `bytes` bytes in two's complement.
  PickleValue LongValue(std::uint64_t bytes) {
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
    // The sign is above the 64 bits that are left, unless they hold it.
    fits = fits && (!is_negative || number >> 63 == 1);
    if (!fits) return {Kind::kHuge, 0};
    return {is_negative ? Kind::kNegative : Kind::kUnsigned, number};
  }

  void PushText(std::uint64_t bytes) {
    if (bytes > kMaxTextBytes) {
      Fail("a text of " + std::to_string(bytes) + " bytes");
    }
    const std::string_view text = Take(bytes);
    auto known = tree_.text_numbers_.find(text);
    if (known == tree_.text_numbers_.end()) {
      // Two entries of its own in the tables, beside the text.
      Charge(bytes + 2 * sizeof(std::string) + 4 * sizeof(void*));
      tree_.texts_.emplace_back(text);
      known = tree_.text_numbers_
                  .emplace(tree_.texts_.back(), tree_.texts_.size() - 1)
                  .first;
    }
    Push({Kind::kText, known->second});
  }

  void PushBytes(std::uint64_t bytes) {
    Skip(bytes);
    Push({Kind::kBytes, 0});
  }

  // --- The memo ----------------------------------------------------------

  void Put(std::uint64_t index) {
    // Each entry takes a byte of the file at least, and they are numbered in
    // order, so a larger index is a mistake that would cost memory.
    if (index > offset_of_opcode_) {
      Fail("memo index " + std::to_string(index) + " is out of all proportion");
    }
    if (index >= memo_.size()) {
      Charge((index + 1 - memo_.size()) * sizeof(PickleValue));
      memo_.resize(index + 1, kUnset);
    }
    if (IsUnset(memo_[index])) ++memo_entries_;
    memo_[index] = Top();
  }

  void Get(std::uint64_t index) {
    if (index >= memo_.size() || IsUnset(memo_[index])) {
      Fail("the memo has no entry " + std::to_string(index));
    }
    Push(memo_[index]);
  }

  static bool IsUnset(PickleValue value) {
    return value.kind == kUnset.kind && value.number == kUnset.number;
  }

  // --- Opcodes -----------------------------------------------------------

  // False at STOP.
  bool Step() {
    offset_of_opcode_ = offset_;
    opcode_.reset();
    if (!Available(1)) Fail("the file ends before STOP");
    const auto opcode = static_cast<PickleOpcode>(Take(1).front());
    opcode_ = opcode;
    if (opcode == PickleOpcode::kStop) {
      Stop();
      return false;
    }
    if (!DoScalar(opcode) && !DoContainer(opcode) && !DoStack(opcode)) {
      Refuse(opcode);
    }
    return true;
  }

  void Stop() {
    tree_.root_ = Pop();
    if (!stack_.empty() || !marks_.empty()) {
      Fail("values are left on the stack");
    }
  }

  bool DoScalar(PickleOpcode opcode);
  bool DoContainer(PickleOpcode opcode);
  bool DoStack(PickleOpcode opcode);
  [[noreturn]] void Refuse(PickleOpcode opcode);

  InputBuffer& input_;
  const PickleOptions& options_;
  PickleTree tree_;
  std::vector<PickleValue> stack_;
  std::vector<std::size_t> marks_;  // sizes that the stack had, ascending
  std::vector<PickleValue> memo_;
  std::uint64_t memo_entries_ = 0;  // those of memo_ that were set
  std::size_t highest_ = 0;         // the most values that the stack had
  std::uint64_t used_bytes_ = 0;
  std::uint64_t offset_ = 0;  // of the next byte
  std::uint64_t offset_of_opcode_ = 0;
  std::optional<PickleOpcode> opcode_;  // the one being done
};

bool PickleMachine::DoScalar(PickleOpcode opcode) {
  switch (opcode) {
    case PickleOpcode::kNone:
      Push({Kind::kNone, 0});
      return true;
    case PickleOpcode::kNewtrue:
      Push({Kind::kBool, 1});
      return true;
    case PickleOpcode::kNewfalse:
      Push({Kind::kBool, 0});
      return true;
    case PickleOpcode::kBinint:
      Push(LongValue(4));
      return true;
    case PickleOpcode::kBinint1:
      Push({Kind::kUnsigned, Number(1)});
      return true;
    case PickleOpcode::kBinint2:
      Push({Kind::kUnsigned, Number(2)});
      return true;
    case PickleOpcode::kLong1:
      Push(LongValue(Number(1)));
      return true;
    case PickleOpcode::kLong4: {
      const std::uint64_t bytes = Number(4);
      if (bytes > INT32_MAX) Fail("the length is negative");
      Push(LongValue(bytes));
      return true;
    }
    case PickleOpcode::kBinfloat:
      Skip(8);
      Push({Kind::kFloat, 0});
      return true;
    case PickleOpcode::kShortBinunicode:
      PushText(Number(1));
      return true;
    case PickleOpcode::kBinunicode:
      PushText(Number(4));
      return true;
    case PickleOpcode::kBinunicode8:
      PushText(Number(8));
      return true;
    case PickleOpcode::kShortBinstring:
    case PickleOpcode::kShortBinbytes:
      PushBytes(Number(1));
      return true;
    case PickleOpcode::kBinstring:
    case PickleOpcode::kBinbytes:
      PushBytes(Number(4));
      return true;
    case PickleOpcode::kBinbytes8:
    case PickleOpcode::kBytearray8:
      PushBytes(Number(8));
      return true;
    default:
      return false;
  }
}

bool PickleMachine::DoContainer(PickleOpcode opcode) {
  switch (opcode) {
    case PickleOpcode::kEmptyList:
      Push(NewContainer(Kind::kList));
      return true;
    case PickleOpcode::kEmptyDict:
      Push(NewContainer(Kind::kDict));
      return true;
    case PickleOpcode::kEmptyTuple:
      Push(NewContainer(Kind::kTuple));
      return true;
    case PickleOpcode::kList:
      MakeOf(Kind::kList, SinceMark());
      return true;
    case PickleOpcode::kDict:
      MakeOf(Kind::kDict, SinceMark());
      return true;
    case PickleOpcode::kTuple:
      MakeOf(Kind::kTuple, SinceMark());
      return true;
    case PickleOpcode::kTuple1:
      MakeOf(Kind::kTuple, Last(1));
      return true;
    case PickleOpcode::kTuple2:
      MakeOf(Kind::kTuple, Last(2));
      return true;
    case PickleOpcode::kTuple3:
      MakeOf(Kind::kTuple, Last(3));
      return true;
    case PickleOpcode::kAppend:
      AddTo(Kind::kList, Last(1));
      return true;
    case PickleOpcode::kAppends:
      AddTo(Kind::kList, SinceMark());
      return true;
    case PickleOpcode::kSetitem:
      AddTo(Kind::kDict, Last(2));
      return true;
    case PickleOpcode::kSetitems:
      AddTo(Kind::kDict, SinceMark());
      return true;
    default:
      return false;
  }
}

bool PickleMachine::DoStack(PickleOpcode opcode) {
  switch (opcode) {
    case PickleOpcode::kProto: {
      const std::uint64_t protocol = Number(1);
      if (protocol < 2 || protocol > 5) {
        Fail("protocol " + std::to_string(protocol) + "; 2 to 5 are read");
      }
      return true;
    }
    case PickleOpcode::kFrame:
      // Tells a reader of streams how much to fetch, and nothing else.
      Skip(8);
      return true;
    case PickleOpcode::kMark:
      Charge(sizeof(std::size_t));
      marks_.push_back(stack_.size());
      return true;
    case PickleOpcode::kPop:
      // Python takes a mark away too if that is on top.
      if (Reachable() == 0 && !marks_.empty()) {
        marks_.pop_back();
      } else {
        Pop();
      }
      return true;
    case PickleOpcode::kPopMark:
      Drop(SinceMark());
      return true;
    case PickleOpcode::kBinput:
      Put(Number(1));
      return true;
    case PickleOpcode::kLongBinput:
      Put(Number(4));
      return true;
    case PickleOpcode::kMemoize:
      Put(memo_entries_);
      return true;
    case PickleOpcode::kBinget:
      Get(Number(1));
      return true;
    case PickleOpcode::kLongBinget:
      Get(Number(4));
      return true;
    default:
      return false;
  }
}

void PickleMachine::Refuse(PickleOpcode opcode) {
  std::string reason = PickleOpcodeRefusal(opcode);
  if (opcode == PickleOpcode::kGlobal) {
    constexpr std::size_t kMostShown = 80;
    while (input_.size() < kMostShown && input_.Fill()) {
    }
    std::string name(input_.data(), std::min(input_.size(), kMostShown));
    const std::size_t first = name.find('\n');
    if (first != std::string::npos) {
      name[first] = '.';
      reason = Quoted(name.substr(0, name.find('\n'))) + " " + reason;
    }
  } else if (opcode == PickleOpcode::kStackGlobal && stack_.size() >= 2) {
    const PickleValue module = stack_[stack_.size() - 2];
    const PickleValue name = stack_.back();
    if (module.kind == Kind::kText && name.kind == Kind::kText) {
      std::string both(tree_.Text(module));
      both += ".";
      reason = Quoted(both.append(tree_.Text(name))) + " " + reason;
    }
  }
  Fail(reason);
}

PickleTree ReadPickle(InputBuffer& input, const PickleOptions& options) {
  return PickleMachine(input, options).Run();
}

}  // namespace strata
