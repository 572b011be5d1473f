#ifndef STRATA_TOOLS_PICKLE_TREE_H_
#define STRATA_TOOLS_PICKLE_TREE_H_

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace strata {

// A value of a PickleTree: 16 bytes, copied freely.
struct PickleValue {
  enum class Kind : std::uint8_t {
    kNone,
    kBool,
    kUnsigned,  // an int from 0 to 2^64 - 1, in `number`
    kNegative,  // an int from -2^63 to -1, in `number` as two's complement
    kHuge,      // an int that 64 bits do not hold
    kFloat,     // nobody asked for its value
    kText,      // `number`: of PickleTree::Text
    kBytes,     // nobody asked for its content
    kObject,    // stands for a Python object, which is never made
    kList,      // these three: `number` is that of PickleTree::Items
    kTuple,
    kDict,
  };

  bool IsContainer() const { return kind >= Kind::kList; }

  Kind kind = Kind::kNone;
  std::uint64_t number = 0;
};

// "a list", "an int": for errors.
const char* PickleKindName(PickleValue::Kind kind);

// The values of a pickle. Containers refer to their items by number, so values
// may be shared, but never hold themselves.
class PickleTree {
 public:
  PickleValue root() const { return root_; }
  std::string_view Text(PickleValue text) const { return texts_[text.number]; }
  // Of a list or tuple its items; of a dict its keys, each before its value.
  const std::vector<PickleValue>& Items(PickleValue container) const {
    return containers_[container.number].items;
  }
  // How many items `container` had that were not kept.
  std::uint64_t DroppedItems(PickleValue container) const {
    return containers_[container.number].dropped_items;
  }
  // The value of a key of a dict; null if it has none.
  const PickleValue* Find(PickleValue dict, std::string_view key) const;

  // How often the pickle asked for an object, and where it first did.
  std::uint64_t objects() const { return objects_; }
  const std::string& first_object() const { return first_object_; }
  // Bytes behind the pickle, and all bytes.
  std::uint64_t trailing_bytes() const { return trailing_bytes_; }
  std::uint64_t bytes() const { return bytes_; }
  void SetBytes(std::uint64_t bytes, std::uint64_t trailing_bytes) {
    bytes_ = bytes;
    trailing_bytes_ = trailing_bytes;
  }

 private:
  friend class PickleMachine;

  struct Container {
    std::vector<PickleValue> items;
    std::uint64_t dropped_items = 0;
    bool is_stored = false;  // is an item of another, so it is complete
  };

  PickleValue root_;
  std::vector<Container> containers_;
  std::deque<std::string> texts_;
  std::unordered_map<std::string_view, std::uint64_t> text_numbers_;
  std::uint64_t objects_ = 0;
  std::string first_object_;
  std::uint64_t trailing_bytes_ = 0;
  std::uint64_t bytes_ = 0;
};

}  // namespace strata

#endif  // STRATA_TOOLS_PICKLE_TREE_H_
