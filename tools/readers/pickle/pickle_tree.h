#ifndef STRATA_TOOLS_READERS_PICKLE_PICKLE_TREE_H_
#define STRATA_TOOLS_READERS_PICKLE_PICKLE_TREE_H_

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace strata::tools {

// A value of a PickleTree: 16 bytes, copied freely.
struct PickleValue {
  enum class Kind : std::uint8_t {
    kNone,
    kBool,
    kUnsigned,  // an int from 0 to 2^64 - 1, in `number`
    kNegative,  // an int from -2^63 to -1, in `number` as two's complement
    kHuge,      // an int of more than 64 bits
    kFloat,     // value not stored
    kText,      // `number`: for PickleTree::Text
    kBytes,     // content not stored
    kObject,    // represents a Python object, which is never created
    kList,      // these three: `number` is for PickleTree::Items
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
// may be shared, but never contain themselves.
class PickleTree {
 public:
  PickleValue root() const { return root_; }
  std::string_view Text(PickleValue text) const { return texts_[text.number]; }
  // The items of a list or tuple; for a dict its keys, each followed by its
  // value.
  const std::vector<PickleValue>& Items(PickleValue container) const {
    return containers_[container.number].items;
  }
  // The number of items of `container` that were not stored.
  std::uint64_t DroppedItems(PickleValue container) const {
    return containers_[container.number].dropped_items;
  }
  // The value of a key of a dict; null if it has none.
  const PickleValue* Find(PickleValue dict, std::string_view key) const;

  // The number of requests for an object, and the position of the first one.
  std::uint64_t objects() const { return objects_; }
  const std::string& first_object() const { return first_object_; }
  // Bytes after the pickle, and all bytes.
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
    bool is_stored = false;  // an item of another container, so it is complete
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

}  // namespace strata::tools

#endif  // STRATA_TOOLS_READERS_PICKLE_PICKLE_TREE_H_
