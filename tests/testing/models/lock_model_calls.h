#ifndef STRATA_TESTS_TESTING_MODELS_LOCK_MODEL_CALLS_H_
#define STRATA_TESTS_TESTING_MODELS_LOCK_MODEL_CALLS_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "strata/tests/testing/models/lock_model.h"

namespace strata::lock_model {

// The content of a variable: a number, or the index of an address.
using Value = std::uint8_t;

// One access of a call.
struct WordAccess {
  enum class Kind : std::uint8_t {
    kLoad,
    kStore,
    kExchange,
    kWaitWhile,
    kBarrier,
    kTakeSlot,
    // Order does not matter for these.
    kMySlot,
    kSelf,
    kGuardedLoad,
    kGuardedStore,
    // The end of the call; `value` is its result.
    kReturn,
  };
  Kind kind = Kind::kReturn;
  std::uint8_t variable = 0;
  Value value = 0;
  bool relaxed = false;  // for a store
};

// The locks, slots and variables of the model, and the accesses of the locks'
// calls.
class Calls {
 public:
  static constexpr std::size_t kSlots = LockModel::kMaxThreads;

  // A point in a call: its next access, and the path to it.
  struct Node {
    WordAccess next;
    std::size_t parent = 0;  // the first node of a call: itself
    LockModel::Do call{};
    std::size_t lock = 0;
    Value result = 0;        // result of the previous access
    bool took_word = false;  // exchanged the lock word
    bool counted = false;    // the call wrote data that the lock word guards
    int named = 0;           // number of writes to a slot
    std::map<Value, std::size_t> children;
  };

  Calls();
  ~Calls();
  Calls(const Calls&) = delete;
  Calls& operator=(const Calls&) = delete;

  const Node& node(std::size_t index) const { return nodes_[index]; }
  // The first node of a call of this kind.
  std::size_t Begin(LockModel::Do call, std::size_t lock);
  // The next node if the access of this node has this result.
  std::size_t After(std::size_t index, Value result);

  // Initial values of all variables.
  const std::vector<Value>& initial() const { return initial_; }
  std::uint8_t taken(std::size_t lock) const { return taken_[lock]; }
  std::uint8_t owner(std::size_t lock) const {
    return static_cast<std::uint8_t>(taken_[lock] + 1);
  }
  // True if the variable is the content of a slot.
  bool IsHeld(std::uint8_t variable) const { return variable < taken_[0]; }
  // Slots as values.
  Value slot(std::size_t index) const { return slots_[index]; }
  Value nobody() const { return nobody_; }

 private:
  struct World;

  // Runs the call with these results, and adds the node at which it stops.
  std::size_t Add(Node node, const std::vector<Value>& results);

  std::unique_ptr<World> world_;
  std::deque<Node> nodes_;
  std::map<std::pair<LockModel::Do, std::size_t>, std::size_t> begins_;
  std::vector<Value> initial_;
  std::array<std::uint8_t, LockModel::kLocks> taken_{};
  std::array<Value, kSlots> slots_{};
  Value nobody_ = 0;
};

}  // namespace strata::lock_model

#endif  // STRATA_TESTS_TESTING_MODELS_LOCK_MODEL_CALLS_H_
