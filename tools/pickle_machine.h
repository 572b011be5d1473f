#ifndef STRATA_TOOLS_PICKLE_MACHINE_H_
#define STRATA_TOOLS_PICKLE_MACHINE_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "strata/tools/pickle_reader.h"
#include "strata/tools/pickle_source.h"
#include "strata/tools/pickle_tree.h"

namespace strata {

// The stack machine that a pickle is a program for: its stack, its memo, and
// the tree that it builds.
//
// Errors: TraceError for what a pickle of plain data does not do, and for more
//   memory than the options allow.
class PickleMachine {
 public:
  using Kind = PickleValue::Kind;

  // Values on top of the stack.
  struct Arguments {
    std::size_t at;     // on the stack, of the first
    std::size_t count;  // to the top
  };

  // Both outlive it. `source` says where an error is.
  PickleMachine(PickleSource& source, const PickleOptions& options)
      : source_(source), options_(options) {}

  void Push(PickleValue value);
  PickleValue Pop();
  // As Python's POP, which takes a mark away too if that is on top.
  void PopValueOrMark();
  void Mark();
  Arguments Last(std::size_t count) const;
  // What is above the last mark, which goes.
  Arguments SinceMark();
  // Pushes the top again.
  void Dup() { Push(PickleValue(Top())); }
  void Drop(Arguments arguments) { stack_.resize(arguments.at); }
  // The text of the value so far below the top; empty if it is none.
  std::string_view TextBelowTop(std::size_t below) const;

  void PushText(std::string_view text);
  void PushEmpty(Kind container) { Push(NewContainer(container)); }
  // Puts a container of `arguments` in their place.
  void MakeOf(Kind kind, Arguments arguments);
  // Puts `arguments` into the container of this kind that is below them.
  void AddTo(Kind kind, Arguments arguments);

  // Puts an object without content in the place of `arguments`. `name` is its
  // class or function, or empty.
  void MakeObject(Arguments arguments, const std::string& name = "");

  // Makes the top an entry of the memo: `index`, or the next one.
  void Put(std::uint64_t index);
  void PutNext() { Put(memo_entries_); }
  void Get(std::uint64_t index);

  // The tree of the only value that is left. Call it once, at the end.
  PickleTree Finish();

 private:
  // A memo entry that was not set.
  static constexpr PickleValue kUnset{Kind::kNone, UINT64_MAX};
  static bool IsUnset(PickleValue value) {
    return value.kind == kUnset.kind && value.number == kUnset.number;
  }

  // Counts what the tree takes.
  void Charge(std::uint64_t bytes);
  // Values above the last mark; those below are another's.
  std::size_t Reachable() const {
    return stack_.size() - (marks_.empty() ? 0 : marks_.back());
  }
  PickleValue& Top();

  PickleTree::Container& Of(PickleValue container) {
    return tree_.containers_[container.number];
  }
  PickleValue NewContainer(Kind kind);
  void CountObject(const std::string& name);
  // Whether `arguments` are not added to the value below them: that is an
  // object, or it would hold itself.
  bool IsLeftOut(Arguments arguments, Kind kind) const;
  PickleValue Target(Arguments arguments, Kind kind) const;
  void Store(PickleValue target, PickleValue item);
  void AddItems(PickleValue target, Arguments arguments);
  bool IsAmong(const std::vector<std::string_view>& keys,
               PickleValue key) const;
  void DropItems(PickleValue container);
  void SetItems(PickleValue target, Arguments arguments);
  void Fill(PickleValue target, Arguments arguments);

  PickleSource& source_;
  const PickleOptions& options_;
  PickleTree tree_;
  std::vector<PickleValue> stack_;
  std::vector<std::size_t> marks_;  // sizes that the stack had, ascending
  std::vector<PickleValue> memo_;
  std::uint64_t memo_entries_ = 0;  // those of memo_ that were set
  std::size_t highest_ = 0;         // the most values that the stack had
  std::uint64_t used_bytes_ = 0;
};

}  // namespace strata

#endif  // STRATA_TOOLS_PICKLE_MACHINE_H_
