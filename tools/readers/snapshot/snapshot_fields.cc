#include "strata/tools/readers/snapshot/snapshot_fields.h"

#include <limits>

namespace strata::tools {
namespace {

using PickleKind = PickleValue::Kind;

}  // namespace

const PickleValue* SnapshotFields::Find(PickleValue dict,
                                        const char* key) const {
  return dict.kind == PickleKind::kDict ? tree_.Find(dict, key) : nullptr;
}

std::optional<std::uint64_t> SnapshotFields::Number(PickleValue dict,
                                                    const char* key) const {
  const PickleValue* value = Find(dict, key);
  if (value == nullptr || value->kind != PickleKind::kUnsigned) {
    return std::nullopt;
  }
  return value->number;
}

std::optional<std::string_view> SnapshotFields::Text(PickleValue dict,
                                                     const char* key) const {
  const PickleValue* value = Find(dict, key);
  if (value == nullptr || value->kind != PickleKind::kText) return std::nullopt;
  return tree_.Text(*value);
}

const std::vector<PickleValue>* SnapshotFields::List(PickleValue dict,
                                                     const char* key) const {
  const PickleValue* value = Find(dict, key);
  return value == nullptr ? nullptr : ListOf(*value);
}

const std::vector<PickleValue>* SnapshotFields::ListOf(
    PickleValue value) const {
  const bool is_list =
      value.kind == PickleKind::kList || value.kind == PickleKind::kTuple;
  if (!is_list || tree_.DroppedItems(value) != 0) return nullptr;
  return &tree_.Items(value);
}

std::uint32_t SnapshotFields::Frames(PickleValue dict) const {
  const PickleValue* value = Find(dict, "frames");
  if (value == nullptr || value->kind != PickleKind::kList) return 0;
  if (tree_.DroppedItems(*value) == 0) return 0;
  // The root is container 0 or contains this one, so no list has number 0.
  if (value->number > std::numeric_limits<std::uint32_t>::max()) return 0;
  return static_cast<std::uint32_t>(value->number);
}

std::string SnapshotFields::Problem(PickleValue dict, const char* key,
                                    const char* expected) const {
  if (dict.kind != PickleKind::kDict) {
    return std::string(PickleKindName(dict.kind)) + " instead of a dict";
  }
  const PickleValue* value = tree_.Find(dict, key);
  if (value == nullptr) return std::string("no ") + key;
  if (value->kind == PickleKind::kNegative) {
    return std::string(key) + " is negative";
  }
  if (value->kind == PickleKind::kHuge) {
    return std::string(key) + " exceeds 64 bits";
  }
  if (value->IsContainer() && tree_.DroppedItems(*value) != 0) {
    return std::string(key) + " is part of something else";
  }
  return std::string(key) + " is " + PickleKindName(value->kind) + ", not " +
         expected;
}

}  // namespace strata::tools
