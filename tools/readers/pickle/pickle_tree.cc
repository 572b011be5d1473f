#include "strata/tools/readers/pickle/pickle_tree.h"

#include <array>

namespace strata::tools {

const char* PickleKindName(PickleValue::Kind kind) {
  constexpr std::array<const char*, 12> kNames = {
      "None",   "a bool", "an int",    "an int", "an int",  "a float",
      "a text", "bytes",  "an object", "a list", "a tuple", "a dict"};
  return kNames.at(static_cast<std::size_t>(kind));
}

const PickleValue* PickleTree::Find(PickleValue dict,
                                    std::string_view key) const {
  const std::vector<PickleValue>& items = Items(dict);
  // From the back: the last value counts for a key that was set twice.
  for (std::size_t i = items.size(); i >= 2; i -= 2) {
    if (Text(items[i - 2]) == key) return &items[i - 1];
  }
  return nullptr;
}

}  // namespace strata::tools
