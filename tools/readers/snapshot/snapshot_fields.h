#ifndef STRATA_TOOLS_READERS_SNAPSHOT_SNAPSHOT_FIELDS_H_
#define STRATA_TOOLS_READERS_SNAPSHOT_SNAPSHOT_FIELDS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "strata/tools/readers/pickle/pickle_tree.h"

namespace strata::tools {

// The values of the dicts of a memory snapshot.
//
// Model: a value that is missing, or of another kind, is returned as nothing;
//   Problem returns the reason.
// Lifetime: the tree outlives it.
class SnapshotFields {
 public:
  explicit SnapshotFields(const PickleTree& tree) : tree_(tree) {}

  std::optional<std::uint64_t> Number(PickleValue dict, const char* key) const;
  std::optional<std::string_view> Text(PickleValue dict, const char* key) const;
  // Null if there is none. A list without stored items counts as none: an
  // unknown key has such a value, too.
  const std::vector<PickleValue>* List(PickleValue dict, const char* key) const;
  const std::vector<PickleValue>* ListOf(PickleValue value) const;
  // A number for the list of stack frames of `dict`, equal for the frames of
  // one call of the allocator; 0: no frames were recorded.
  std::uint32_t Frames(PickleValue dict) const;

  // The reason why Number, Text or List returns nothing: "no size", "size is
  // negative".
  std::string Problem(PickleValue dict, const char* key,
                      const char* expected) const;

 private:
  const PickleValue* Find(PickleValue dict, const char* key) const;

  const PickleTree& tree_;
};

}  // namespace strata::tools

#endif  // STRATA_TOOLS_READERS_SNAPSHOT_SNAPSHOT_FIELDS_H_
