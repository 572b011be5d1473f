#include "strata/tests/testing/models/lock_model_calls.h"

#include <algorithm>
#include <atomic>
#include <type_traits>
#include <utility>

#include "strata/platform/biased_lock/biased_lock_core.h"

namespace strata::lock_model {
namespace {

// Thrown when a call reaches an access without a known result.
struct Stop {};

// The call that runs, with the results of its first accesses.
struct Run {
  Run();

  std::vector<Value> initial;  // of the variables made so far
  std::vector<const void*> addresses{nullptr};
  const std::vector<Value>* results = nullptr;
  std::size_t next = 0;
  WordAccess stopped_at;

  Value Do(const WordAccess& access) {
    if (next < results->size()) return (*results)[next++];
    stopped_at = access;
    throw Stop();
  }
  template <class T>
  Value Encode(T value) {
    if constexpr (std::is_pointer_v<T>) {
      const void* const address = value;
      auto found = std::find(addresses.begin(), addresses.end(), address);
      if (found == addresses.end()) {
        addresses.push_back(address);
        found = addresses.end() - 1;
      }
      return static_cast<Value>(found - addresses.begin());
    } else {
      return static_cast<Value>(value);
    }
  }
  template <class T>
  T Decode(Value value) const {
    if constexpr (std::is_pointer_v<T>) {
      return static_cast<T>(const_cast<void*>(addresses[value]));
    } else {
      return static_cast<T>(value);
    }
  }
};

// The run that builds or calls its locks now.
Run* g_run = nullptr;

Run::Run() { g_run = this; }

template <class T>
class Variable {
 public:
  // NOLINTNEXTLINE(google-explicit-constructor): as std::atomic's
  Variable(T value) : index_(static_cast<std::uint8_t>(g_run->initial.size())) {
    g_run->initial.push_back(g_run->Encode(value));
  }

 protected:
  Value Do(WordAccess::Kind kind, T value = T(), bool relaxed = false) const {
    return g_run->Do({kind, index_, g_run->Encode(value), relaxed});
  }

 private:
  std::uint8_t index_;
};

template <class T>
class Atomic : public Variable<T> {
 public:
  using Variable<T>::Variable;
  T load(std::memory_order /*order*/) const {
    return g_run->Decode<T>(this->Do(WordAccess::Kind::kLoad));
  }
  void store(T value, std::memory_order order) {
    this->Do(WordAccess::Kind::kStore, value,
             order == std::memory_order_relaxed);
  }
  T exchange(T value, std::memory_order /*order*/) {
    return g_run->Decode<T>(this->Do(WordAccess::Kind::kExchange, value));
  }
  void WaitWhile(T value) const {
    this->Do(WordAccess::Kind::kWaitWhile, value);
  }
};

template <class T>
class Guarded : public Variable<T> {
 public:
  using Variable<T>::Variable;
  // NOLINTNEXTLINE(google-explicit-constructor): as a T
  operator T() const {
    return g_run->Decode<T>(this->Do(WordAccess::Kind::kGuardedLoad));
  }
  Guarded& operator=(T value) {
    this->Do(WordAccess::Kind::kGuardedStore, value);
    return *this;
  }
};

struct Slot {
  Atomic<const void*> held{nullptr};
};

// The slots come first; see Calls::IsHeld.
struct Slots {
  Run run;
  Slot nobody;
  std::array<Slot, Calls::kSlots> of_threads;
};

Slots* g_slots = nullptr;

// Small limits. The first use sets an owner. After a removal, two uses set
// one, after the next removals three. After two more uses in turn, the lock has
// no owner any more.
struct Machine {
  template <class T>
  using Atomic = lock_model::Atomic<T>;
  template <class T>
  using Guarded = lock_model::Guarded<T>;
  using Slot = lock_model::Slot;
  static constexpr std::uint32_t kFirstRun = 1;
  static constexpr std::uint32_t kMostRun = 3;
  static constexpr std::uint32_t kMostTurns = 3;

  class Wait {
   public:
    template <class T>
    void While(const Atomic<T>& word, T value) {
      word.WaitWhile(value);
    }
  };

  static Slot* Nobody() { return &g_slots->nobody; }
  // The thread whose call runs.
  struct Thread {
    // NOLINTNEXTLINE(google-explicit-constructor): as a pointer
    operator const void*() const {
      return g_run->Decode<const void*>(g_run->Do({WordAccess::Kind::kSelf}));
    }
  };
  static Thread Self() { return {}; }
  static Slot* SlotOf(Thread /*thread*/) {
    return AskForSlot(WordAccess::Kind::kMySlot);
  }
  static Slot* TakeSlot() { return AskForSlot(WordAccess::Kind::kTakeSlot); }
  static bool has_barrier() { return true; }
  void Barrier() { g_run->Do({WordAccess::Kind::kBarrier}); }

 private:
  static Slot* AskForSlot(WordAccess::Kind kind) {
    return g_run->Decode<Slot*>(g_run->Do({kind}));
  }
};

using Lock = BiasedLockCore<Machine>;

// Returns the result of the call.
bool Call(Lock& lock, LockModel::Do call) {
  switch (call) {
    case LockModel::Do::kLock:
      lock.Lock(Machine::Self());
      return true;
    case LockModel::Do::kTryLock:
      return lock.TryLock(Machine::Self()) != Lock::Way::kNone;
    default:
      if (auto* slot = lock.Entered(Machine::Self())) {
        Lock::Leave(slot);
      } else {
        lock.Release();
      }
      return true;
  }
}

}  // namespace

struct Calls::World {
  Slots slots;
  std::vector<std::unique_ptr<Lock>> locks;
};

Calls::Calls() : world_(std::make_unique<World>()) {
  Slots& slots = world_->slots;
  g_slots = &slots;
  Run& run = slots.run;
  for (std::size_t lock = 0; lock < LockModel::kLocks; ++lock) {
    taken_[lock] = static_cast<std::uint8_t>(run.initial.size());
    world_->locks.push_back(std::make_unique<Lock>(Machine()));
  }
  initial_ = run.initial;
  nobody_ = run.Encode(&slots.nobody);
  for (std::size_t i = 0; i < kSlots; ++i) {
    slots_[i] = run.Encode(&slots.of_threads[i]);
  }
}

Calls::~Calls() = default;

std::size_t Calls::Begin(LockModel::Do call, std::size_t lock) {
  const auto [begin, is_new] = begins_.try_emplace({call, lock}, nodes_.size());
  if (is_new) {
    Node node;
    node.parent = nodes_.size();
    node.call = call;
    node.lock = lock;
    Add(std::move(node), {});
  }
  return begin->second;
}

std::size_t Calls::After(std::size_t index, Value result) {
  Node& parent = nodes_[index];
  const auto found = parent.children.find(result);
  if (found != parent.children.end()) return found->second;
  Node node;
  node.parent = index;
  node.call = parent.call;
  node.lock = parent.lock;
  node.result = result;
  node.took_word =
      parent.took_word || parent.next.kind == WordAccess::Kind::kExchange;
  node.counted =
      parent.counted || parent.next.kind == WordAccess::Kind::kGuardedStore;
  const bool names = parent.next.kind == WordAccess::Kind::kStore &&
                     IsHeld(parent.next.variable);
  node.named = parent.named + (names ? 1 : 0);
  std::vector<Value> results{result};
  for (std::size_t i = index; nodes_[i].parent != i; i = nodes_[i].parent) {
    results.push_back(nodes_[i].result);
  }
  std::reverse(results.begin(), results.end());
  parent.children[result] = nodes_.size();
  return Add(std::move(node), results);
}

std::size_t Calls::Add(Node node, const std::vector<Value>& results) {
  g_slots = &world_->slots;
  Run& run = world_->slots.run;
  g_run = &run;
  run.results = &results;
  run.next = 0;
  try {
    const bool returned = Call(*world_->locks[node.lock], node.call);
    node.next = {WordAccess::Kind::kReturn, 0, static_cast<Value>(returned)};
  } catch (const Stop&) {
    node.next = run.stopped_at;
  }
  nodes_.push_back(std::move(node));
  return nodes_.size() - 1;
}

}  // namespace strata::lock_model
