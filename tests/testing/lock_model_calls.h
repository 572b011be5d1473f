#ifndef STRATA_TESTS_TESTING_LOCK_MODEL_CALLS_H_
#define STRATA_TESTS_TESTING_LOCK_MODEL_CALLS_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "strata/tests/testing/lock_model.h"

namespace strata::lock_model {

// What a variable holds: a number, or the index of an address.
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
    // No matter of order.
    kMySlot,
    kSelf,
    kGuardedLoad,
    kGuardedStore,
    // The call is over; `value` is what it returned.
    kReturn,
  };
  Kind kind = Kind::kReturn;
  std::uint8_t variable = 0;
  Value value = 0;
  bool relaxed = false;  // of a store
};

// The locks, slots and variables of the model, and what calls of the locks do.
class Calls {
 public:
  static constexpr std::size_t kSlots = LockModel::kMaxThreads;

  // Where a call is: what it does next, and how it came to be there.
  struct Node {
    WordAccess next;
    std::size_t parent = 0;  // of the first one of a call: itself
    LockModel::Do call{};
    std::size_t lock = 0;
    Value result = 0;        // of the access before
    bool took_word = false;  // exchanged the lock word
    int named = 0;           // how often it wrote a slot
    std::map<Value, std::size_t> children;
  };

  Calls();
  ~Calls();
  Calls(const Calls&) = delete;
  Calls& operator=(const Calls&) = delete;

  const Node& node(std::size_t index) const { return nodes_[index]; }
  // The first node of a call of this kind.
  std::size_t Begin(LockModel::Do call, std::size_t lock);
  // The next node, if the access of this one had this result.
  std::size_t After(std::size_t index, Value result);

  // Of all variables.
  const std::vector<Value>& initial() const { return initial_; }
  std::uint8_t taken(std::size_t lock) const { return taken_[lock]; }
  std::uint8_t owner(std::size_t lock) const {
    return static_cast<std::uint8_t>(taken_[lock] + 1);
  }
  // Whether it is what a slot holds.
  bool IsHeld(std::uint8_t variable) const { return variable < taken_[0]; }
  // Slots as values.
  Value slot(std::size_t index) const { return slots_[index]; }
  Value nobody() const { return nobody_; }

 private:
  struct World;

  // Runs the call with these results, and adds where it stops.
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

#endif  // STRATA_TESTS_TESTING_LOCK_MODEL_CALLS_H_
