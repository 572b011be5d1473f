#ifndef STRATA_TOOLS_READERS_PICKLE_PICKLE_MACHINE_H_
#define STRATA_TOOLS_READERS_PICKLE_PICKLE_MACHINE_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "strata/tools/readers/pickle/pickle_reader.h"
#include "strata/tools/readers/pickle/pickle_source.h"
#include "strata/tools/readers/pickle/pickle_tree.h"

namespace strata::tools {

// The stack machine that runs a pickle: its stack, its memo, and the tree that
// it builds.
//
// Errors: TraceError for an operation that a pickle of plain data does not
//   need, and for more memory than the options allow.
class PickleMachine {
 public:
  using Kind = PickleValue::Kind;

  // Values on top of the stack.
  struct Arguments {
    std::size_t at;     // index of the first one on the stack
    std::size_t count;  // up to the top
  };

  // Both arguments outlive it. `source` provides the position of errors.
  PickleMachine(PickleSource& source, const PickleOptions& options)
      : source_(source), options_(options) {}

  void Push(PickleValue value);
  PickleValue Pop();
  // As Python's POP: removes the mark if that is on top.
  void PopValueOrMark();
  void Mark();
  Arguments Last(std::size_t count) const;
  // The values above the last mark. Removes the mark.
  Arguments SinceMark();
  // Pushes a copy of the top.
  void Dup() { Push(PickleValue(Top())); }
  void Drop(Arguments arguments) { stack_.resize(arguments.at); }
  // The text of the value `below` places under the top; empty if it is not a
  // text.
  std::string_view TextBelowTop(std::size_t below) const;

  void PushText(std::string_view text);
  void PushEmpty(Kind container) { Push(NewContainer(container)); }
  // Replaces `arguments` by a container of them.
  void MakeOf(Kind kind, Arguments arguments);
  // Adds `arguments` to the container of this kind below them.
  void AddTo(Kind kind, Arguments arguments);

  // Replaces `arguments` by an object without content. `name` is its class or
  // function, or empty.
  void MakeObject(Arguments arguments, const std::string& name = "");

  // Stores the top in the memo, as entry `index` or as the next one.
  void Put(std::uint64_t index);
  void PutNext() { Put(memo_entries_); }
  void Get(std::uint64_t index);

  // The tree of the only remaining value. Call it once, at the end.
  PickleTree Finish();

 private:
  // A memo entry without a value.
  static constexpr PickleValue kUnset{Kind::kNone, UINT64_MAX};
  static bool IsUnset(PickleValue value) {
    return value.kind == kUnset.kind && value.number == kUnset.number;
  }

  // Counts memory of the tree.
  void Charge(std::uint64_t bytes);
  // Number of values above the last mark. The values below it are not
  // accessible.
  std::size_t Reachable() const {
    return stack_.size() - (marks_.empty() ? 0 : marks_.back());
  }
  PickleValue& Top();

  PickleTree::Container& Of(PickleValue container) {
    return tree_.containers_[container.number];
  }
  PickleValue NewContainer(Kind kind);
  void CountObject(const std::string& name);
  // Whether `arguments` are not added to the value below them: it is an object,
  // or would contain itself.
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
  // sizes of the stack at the marks, ascending
  std::vector<std::size_t> marks_;
  std::vector<PickleValue> memo_;
  std::uint64_t memo_entries_ = 0;  // entries of memo_ with a value
  std::size_t highest_ = 0;         // largest size of the stack
  std::uint64_t used_bytes_ = 0;
};

}  // namespace strata::tools

#endif  // STRATA_TOOLS_READERS_PICKLE_PICKLE_MACHINE_H_
