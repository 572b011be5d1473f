#include "strata/tools/readers/pickle/pickle_machine.h"

#include <algorithm>
#include <string>
#include <utility>

#include "strata/base/quoted.h"
#include "strata/base/size.h"

namespace strata::tools {

void PickleMachine::Charge(std::uint64_t bytes) {
  used_bytes_ += bytes;
  if (used_bytes_ > options_.max_bytes) {
    source_.Fail("the values take more than " + HumanBytes(options_.max_bytes));
  }
}

// --- The stack ------------------------------------------------------------

void PickleMachine::Push(PickleValue value) {
  stack_.push_back(value);
  if (stack_.size() > highest_) {
    highest_ = stack_.size();
    Charge(sizeof(PickleValue));
  }
}

PickleValue& PickleMachine::Top() {
  if (Reachable() == 0) source_.Fail("the stack is empty");
  return stack_.back();
}

PickleValue PickleMachine::Pop() {
  const PickleValue value = Top();
  stack_.pop_back();
  return value;
}

void PickleMachine::PopValueOrMark() {
  if (Reachable() == 0 && !marks_.empty()) {
    marks_.pop_back();
  } else {
    Pop();
  }
}

void PickleMachine::Mark() {
  Charge(sizeof(std::size_t));
  marks_.push_back(stack_.size());
}

PickleMachine::Arguments PickleMachine::Last(std::size_t count) const {
  if (Reachable() < count) source_.Fail("the stack is empty");
  return {stack_.size() - count, count};
}

PickleMachine::Arguments PickleMachine::SinceMark() {
  if (marks_.empty()) source_.Fail("there is no mark");
  const std::size_t at = marks_.back();
  marks_.pop_back();
  return {at, stack_.size() - at};
}

std::string_view PickleMachine::TextBelowTop(std::size_t below) const {
  if (below >= stack_.size()) return {};
  const PickleValue value = stack_[stack_.size() - 1 - below];
  return value.kind == Kind::kText ? tree_.Text(value) : std::string_view();
}

PickleTree PickleMachine::Finish() {
  tree_.root_ = Pop();
  if (!stack_.empty() || !marks_.empty()) {
    source_.Fail("values are left on the stack");
  }
  return std::move(tree_);
}

// --- Values ---------------------------------------------------------------

void PickleMachine::PushText(std::string_view text) {
  auto known = tree_.text_numbers_.find(text);
  if (known == tree_.text_numbers_.end()) {
    // The text has an entry in each of two tables.
    Charge(text.size() + 2 * sizeof(std::string) + 4 * sizeof(void*));
    tree_.texts_.emplace_back(text);
    known = tree_.text_numbers_
                .emplace(tree_.texts_.back(), tree_.texts_.size() - 1)
                .first;
  }
  Push({Kind::kText, known->second});
}

PickleValue PickleMachine::NewContainer(Kind kind) {
  Charge(sizeof(PickleTree::Container) + sizeof(void*));
  tree_.containers_.emplace_back();
  return {kind, tree_.containers_.size() - 1};
}

// The container below `arguments`, to which they are added.
//
// A container that is part of another is complete. Python adds to it only if it
// contains itself. So refusing that prevents cycles.
PickleValue PickleMachine::Target(Arguments arguments, Kind kind) const {
  const std::size_t lowest = marks_.empty() ? 0 : marks_.back();
  if (arguments.at <= lowest) source_.Fail("the stack is empty");
  const PickleValue target = stack_[arguments.at - 1];
  if (target.kind != kind) {
    source_.Fail(std::string("adds to ") + PickleKindName(target.kind));
  }
  if (tree_.containers_[target.number].is_stored) {
    source_.Fail("adds to a container that another one holds: a cycle");
  }
  return target;
}

void PickleMachine::Store(PickleValue target, PickleValue item) {
  if (!item.IsContainer()) return;
  if (item.number == target.number) {
    source_.Fail("a container would hold itself");
  }
  Of(item).is_stored = true;
}

void PickleMachine::AddItems(PickleValue target, Arguments arguments) {
  Charge(arguments.count * sizeof(PickleValue));
  const auto from = stack_.begin() + static_cast<std::ptrdiff_t>(arguments.at);
  std::for_each(from, stack_.end(),
                [&](PickleValue item) { Store(target, item); });
  std::vector<PickleValue>& items = Of(target).items;
  items.insert(items.end(), from, stack_.end());
  Drop(arguments);
}

bool PickleMachine::IsAmong(const std::vector<std::string_view>& keys,
                            PickleValue key) const {
  return key.kind == Kind::kText &&
         std::find(keys.begin(), keys.end(), tree_.Text(key)) != keys.end();
}

void PickleMachine::DropItems(PickleValue container) {
  PickleTree::Container& dropped = Of(container);
  if (dropped.dropped_items != 0) return;
  dropped.dropped_items = dropped.items.size();
  dropped.items = std::vector<PickleValue>();
}

void PickleMachine::SetItems(PickleValue target, Arguments arguments) {
  if (arguments.count % 2 != 0) source_.Fail("a key without a value");
  const std::size_t end = arguments.at + arguments.count;
  for (std::size_t i = arguments.at; i < end; i += 2) {
    const PickleValue key = stack_[i];
    const PickleValue value = stack_[i + 1];
    if (key.kind == Kind::kList || key.kind == Kind::kDict) {
      source_.Fail(std::string("a key is ") + PickleKindName(key.kind));
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

void PickleMachine::Fill(PickleValue target, Arguments arguments) {
  if (target.kind == Kind::kDict) {
    SetItems(target, arguments);
  } else {
    AddItems(target, arguments);
  }
}

void PickleMachine::MakeOf(Kind kind, Arguments arguments) {
  const PickleValue made = NewContainer(kind);
  Fill(made, arguments);
  Push(made);
}

void PickleMachine::AddTo(Kind kind, Arguments arguments) {
  if (options_.allows_objects && IsLeftOut(arguments, kind)) {
    CountObject("");
    Drop(arguments);
    return;
  }
  Fill(Target(arguments, kind), arguments);
}

bool PickleMachine::IsLeftOut(Arguments arguments, Kind kind) const {
  const std::size_t lowest = marks_.empty() ? 0 : marks_.back();
  if (arguments.at <= lowest) return false;  // an error
  const PickleValue target = stack_[arguments.at - 1];
  if (target.kind == Kind::kObject) return true;
  if (target.kind != kind) return false;  // an error
  return tree_.containers_[target.number].is_stored ||
         std::any_of(stack_.begin() + static_cast<std::ptrdiff_t>(arguments.at),
                     stack_.end(), [target](PickleValue item) {
                       return item.IsContainer() &&
                              item.number == target.number;
                     });
}

void PickleMachine::MakeObject(Arguments arguments, const std::string& name) {
  CountObject(name);
  Drop(arguments);
  Push({Kind::kObject, 0});
}

void PickleMachine::CountObject(const std::string& name) {
  if (++tree_.objects_ != 1) return;
  tree_.first_object_ = source_.Place() + "asks for ";
  tree_.first_object_ += name.empty() ? "an object" : Quoted(name);
  tree_.first_object_ += ", which is never made";
}

// --- The memo -------------------------------------------------------------

void PickleMachine::Put(std::uint64_t index) {
  // Each entry takes at least a byte of the file, and entries are numbered in
  // order. A larger index is an error that would cost memory.
  if (index > source_.offset_of_opcode()) {
    source_.Fail("memo index " + std::to_string(index) +
                 " is out of all proportion");
  }
  if (index >= memo_.size()) {
    Charge((index + 1 - memo_.size()) * sizeof(PickleValue));
    memo_.resize(index + 1, kUnset);
  }
  if (IsUnset(memo_[index])) ++memo_entries_;
  memo_[index] = Top();
}

void PickleMachine::Get(std::uint64_t index) {
  if (index >= memo_.size() || IsUnset(memo_[index])) {
    source_.Fail("the memo has no entry " + std::to_string(index));
  }
  Push(memo_[index]);
}

}  // namespace strata::tools
