#include "strata/tests/testing/models/lock_model.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <memory>
#include <string_view>
#include <type_traits>
#include <unordered_set>

#include "strata/tests/testing/models/lock_model_calls.h"

namespace strata {
namespace {

using lock_model::Calls;
using lock_model::Value;
using lock_model::WordAccess;
using Do = LockModel::Do;

constexpr std::size_t kMaxVariables = 24;
// Most pending stores of a thread. One more store waits for the first.
constexpr std::size_t kMaxStores = 4;

struct Store {
  std::uint8_t variable = 0;
  Value value = 0;
  std::uint8_t relaxed = 0;
};

struct Thread {
  std::uint16_t node = 0;  // node of Calls; 1 after the load of a kCount
  std::uint8_t step = 0;   // step of its program
  Value slot = 0;
  Value seen = 0;            // value of a counter
  std::uint8_t owned = 0;    // bits: locks that it made itself the owner of
  std::uint8_t passing = 0;  // bits: threads that its barrier waits for
  std::uint8_t stores = 0;
  std::array<Store, kMaxStores> on_their_way{};
};

struct State {
  std::array<Thread, LockModel::kMaxThreads> threads{};
  std::array<Value, kMaxVariables> memory{};
  std::array<Value, LockModel::kLocks> counted{};  // sections that ran
  std::uint8_t idle_slots = 0;                     // bits
  std::uint8_t removed = 0;  // bits: locks with a removed owner

  friend bool operator==(const State& a, const State& b) {
    return std::memcmp(&a, &b, sizeof(State)) == 0;
  }
};
static_assert(std::has_unique_object_representations_v<State>);

struct Hash {
  std::size_t operator()(const State& state) const {
    return std::hash<std::string_view>()(
        std::string_view(reinterpret_cast<const char*>(&state), sizeof(state)));
  }
};

class Explorer {
 public:
  Explorer(const std::vector<LockModel::Program>& programs,
           LockModel::Memory memory, LockModel::Fault fault)
      : programs_(programs),
        is_weak_(memory == LockModel::Memory::kWeak),
        fault_(fault) {}

  LockModel::Result Run();

 private:
  std::uint8_t Counter(std::size_t lock) const {
    return static_cast<std::uint8_t>(calls_.initial().size() + lock);
  }
  const LockModel::Step* StepOf(const State& state, std::size_t thread) const {
    const std::size_t step = state.threads[thread].step;
    const LockModel::Program& program = programs_[thread];
    return step < program.size() ? &program[step] : nullptr;
  }

  // Takes every step that can be taken in the state.
  void TakeSteps(const State& state);
  void Reach(const State& state);
  void CheckEnd(const State& state);
  void Fail(const char* error) {
    if (result_.error.empty()) result_.error = error;
  }

  static Value Load(const State& state, std::size_t thread,
                    std::uint8_t variable);
  // Makes the i-th store reach memory.
  static void Arrive(State& state, std::size_t thread, std::size_t i);
  static void ArriveAll(State& state, std::size_t thread);
  bool MayArrive(const Thread& thread, std::size_t i) const;
  bool IsOnItsWay(const Thread& thread, std::uint8_t variable) const;

  // Takes the next step of the thread. Returns false if it has to wait.
  bool TakeStep(State& state, std::size_t thread);
  bool TakeAccess(State& state, std::size_t thread);
  // Likewise, for an access with the same result in every order.
  bool IsLocal(const WordAccess& access) const;
  Value LocalResult(State& state, std::size_t thread, const WordAccess& access);
  Value TakeSlot(State& state, std::size_t thread);
  void GoOn(State& state, std::size_t thread, Value result);
  void BeginStep(State& state, std::size_t thread);
  void Return(State& state, std::size_t thread);
  void Enter(State& state, std::size_t thread);
  bool IsInside(const State& state, std::size_t thread, std::size_t lock) const;

  Calls calls_;
  const std::vector<LockModel::Program>& programs_;
  const bool is_weak_;
  const LockModel::Fault fault_;
  std::unordered_set<State, Hash> seen_;
  std::vector<State> todo_;
  LockModel::Result result_;
};

Value Explorer::Load(const State& state, std::size_t thread,
                     std::uint8_t variable) {
  const Thread& t = state.threads[thread];
  for (std::size_t i = t.stores; i-- > 0;) {
    if (t.on_their_way[i].variable == variable) return t.on_their_way[i].value;
  }
  return state.memory[variable];
}

void Explorer::Arrive(State& state, std::size_t thread, std::size_t i) {
  Thread& t = state.threads[thread];
  const Store store = t.on_their_way[i];
  state.memory[store.variable] = store.value;
  for (--t.stores; i < t.stores; ++i) t.on_their_way[i] = t.on_their_way[i + 1];
  t.on_their_way[t.stores] = Store();
}

void Explorer::ArriveAll(State& state, std::size_t thread) {
  while (state.threads[thread].stores != 0) Arrive(state, thread, 0);
}

bool Explorer::MayArrive(const Thread& thread, std::size_t i) const {
  if (i == 0) return true;
  const Store& store = thread.on_their_way[i];
  if (!is_weak_ || store.relaxed == 0) return false;
  for (std::size_t before = 0; before < i; ++before) {
    if (thread.on_their_way[before].variable == store.variable) return false;
  }
  return true;
}

bool Explorer::IsOnItsWay(const Thread& thread, std::uint8_t variable) const {
  for (std::size_t i = 0; i < thread.stores; ++i) {
    if (thread.on_their_way[i].variable == variable) return true;
  }
  return false;
}

bool Explorer::IsLocal(const WordAccess& access) const {
  switch (access.kind) {
    case WordAccess::Kind::kMySlot:
    case WordAccess::Kind::kSelf:
    case WordAccess::Kind::kGuardedLoad:
    case WordAccess::Kind::kGuardedStore:
      return true;
    default:
      return false;
  }
}

Value Explorer::LocalResult(State& state, std::size_t thread,
                            const WordAccess& access) {
  switch (access.kind) {
    case WordAccess::Kind::kMySlot:
      return state.threads[thread].slot;
    case WordAccess::Kind::kSelf:
      return calls_.slot(thread);  // any address of the thread's own
    default:
      break;
  }
  const Calls::Node& node = calls_.node(state.threads[thread].node);
  if (!node.took_word || state.memory[calls_.taken(node.lock)] == 0) {
    Fail("what the lock word guards is used without it");
  }
  if (access.kind == WordAccess::Kind::kGuardedLoad) {
    return state.memory[access.variable];
  }
  state.memory[access.variable] = access.value;
  return 0;
}

Value Explorer::TakeSlot(State& state, std::size_t thread) {
  const auto index =
      static_cast<std::size_t>(std::countr_zero(state.idle_slots));
  if (index >= Calls::kSlots) return 0;
  state.idle_slots =
      static_cast<std::uint8_t>(state.idle_slots & ~(1U << index));
  return state.threads[thread].slot = calls_.slot(index);
}

bool Explorer::TakeAccess(State& state, std::size_t thread) {
  Thread& t = state.threads[thread];
  const Calls::Node& node = calls_.node(t.node);
  const WordAccess& access = node.next;
  switch (access.kind) {
    case WordAccess::Kind::kLoad: {
      const WordAccess& before = calls_.node(node.parent).next;
      const bool is_second_look = before.kind == WordAccess::Kind::kStore &&
                                  calls_.IsHeld(before.variable) &&
                                  before.value != 0;
      if (is_second_look && fault_ == LockModel::Fault::kSecondLook) {
        GoOn(state, thread, t.slot);
        return true;
      }
      GoOn(state, thread, Load(state, thread, access.variable));
      return true;
    }
    case WordAccess::Kind::kStore: {
      if (t.stores == kMaxStores) return false;
      t.on_their_way[t.stores++] = {access.variable, access.value,
                                    static_cast<std::uint8_t>(access.relaxed)};
      if (access.variable == calls_.owner(node.lock)) {
        const unsigned bit = 1U << node.lock;
        if (access.value == 0) result_.gave_up = true;
        const bool owns = access.value != calls_.nobody() && access.value != 0;
        t.owned =
            static_cast<std::uint8_t>(owns ? t.owned | bit : t.owned & ~bit);
      }
      GoOn(state, thread, 0);
      return true;
    }
    case WordAccess::Kind::kExchange: {
      if (is_weak_ ? IsOnItsWay(t, access.variable) : t.stores != 0) {
        return false;
      }
      const Value old = state.memory[access.variable];
      state.memory[access.variable] = access.value;
      GoOn(state, thread, old);
      return true;
    }
    case WordAccess::Kind::kWaitWhile: {
      const bool is_skipped =
          fault_ == LockModel::Fault::kWait && calls_.IsHeld(access.variable);
      if (!is_skipped && Load(state, thread, access.variable) == access.value) {
        return false;
      }
      GoOn(state, thread, 0);
      return true;
    }
    case WordAccess::Kind::kBarrier: {
      result_.removed = true;
      state.removed =
          static_cast<std::uint8_t>(state.removed | (1U << node.lock));
      ArriveAll(state, thread);
      if (fault_ == LockModel::Fault::kBarrier) {
        GoOn(state, thread, 0);
        return true;
      }
      const unsigned all = (1U << programs_.size()) - 1;
      t.passing = static_cast<std::uint8_t>(all & ~(1U << thread));
      return true;
    }
    case WordAccess::Kind::kTakeSlot:
      GoOn(state, thread, TakeSlot(state, thread));
      return true;
    default:
      Fail("an access that has no result");
      return false;
  }
}

void Explorer::GoOn(State& state, std::size_t thread, Value result) {
  Thread& t = state.threads[thread];
  std::size_t index = calls_.After(t.node, result);
  while (true) {
    t.node = static_cast<std::uint16_t>(index);
    const WordAccess access = calls_.node(index).next;
    if (!IsLocal(access)) break;
    index = calls_.After(index, LocalResult(state, thread, access));
  }
  if (calls_.node(index).next.kind == WordAccess::Kind::kReturn) {
    Return(state, thread);
  }
}

void Explorer::Return(State& state, std::size_t thread) {
  Thread& t = state.threads[thread];
  const Calls::Node& node = calls_.node(t.node);
  if (node.call != Do::kUnlock && node.named > 1) result_.undone = true;
  if (node.call == Do::kTryLock && node.next.value == 0) {
    result_.try_failed = true;
    const LockModel::Program& program = programs_[thread];
    while (program[t.step].what != Do::kUnlock ||
           program[t.step].lock != node.lock) {
      ++t.step;
    }
  } else if (node.call != Do::kUnlock) {
    Enter(state, thread);
  }
  ++t.step;
  BeginStep(state, thread);
}

void Explorer::Enter(State& state, std::size_t thread) {
  const Thread& t = state.threads[thread];
  const Calls::Node& node = calls_.node(t.node);
  for (std::size_t other = 0; other < programs_.size(); ++other) {
    if (other != thread && IsInside(state, other, node.lock)) {
      Fail("two threads hold one lock");
    }
  }
  if (node.call == Do::kTryLock) {
    if (node.counted) result_.tried_word = true;
    if (!node.took_word) result_.tried_owner = true;
  }
  if (node.took_word) return;
  result_.entered = true;
  if ((state.removed >> node.lock & 1) != 0) result_.entered_again = true;
  if ((t.owned >> node.lock & 1) == 0) result_.inherited = true;
}

bool Explorer::IsInside(const State& state, std::size_t thread,
                        std::size_t lock) const {
  const Thread& t = state.threads[thread];
  const LockModel::Program& program = programs_[thread];
  // The thread is on the step after its call of Lock. During Unlock it is on
  // the step of Unlock.
  for (std::size_t i = t.step; i < program.size(); ++i) {
    if (program[i].lock != lock) continue;
    switch (program[i].what) {
      case Do::kLock:
      case Do::kTryLock:
        return false;
      case Do::kUnlock:
        return true;
      default:
        break;
    }
  }
  return false;
}

void Explorer::BeginStep(State& state, std::size_t thread) {
  const LockModel::Step* const step = StepOf(state, thread);
  Thread& t = state.threads[thread];
  t.node = 0;
  if (step == nullptr || step->what == Do::kCount || step->what == Do::kEnd) {
    return;
  }
  std::size_t index = calls_.Begin(step->what, step->lock);
  while (IsLocal(calls_.node(index).next)) {
    index = calls_.After(index,
                         LocalResult(state, thread, calls_.node(index).next));
  }
  t.node = static_cast<std::uint16_t>(index);
}

bool Explorer::TakeStep(State& state, std::size_t thread) {
  const LockModel::Step* const step = StepOf(state, thread);
  Thread& t = state.threads[thread];
  if (step == nullptr || t.passing != 0) return false;
  switch (step->what) {
    case Do::kCount:
      if (t.node == 0) {
        t.seen = Load(state, thread, Counter(step->lock));
        t.node = 1;
        return true;
      }
      if (t.stores == kMaxStores) return false;
      t.on_their_way[t.stores++] = {Counter(step->lock),
                                    static_cast<Value>(t.seen + 1), 1};
      ++state.counted[step->lock];
      t.seen = 0;
      break;
    case Do::kEnd:
      if (t.stores != 0) return false;
      for (std::size_t i = 0; i < Calls::kSlots; ++i) {
        if (calls_.slot(i) != t.slot) continue;
        state.idle_slots =
            static_cast<std::uint8_t>(state.idle_slots | 1U << i);
      }
      t.slot = 0;
      t.owned = 0;
      break;
    default:
      return TakeAccess(state, thread);
  }
  ++t.step;
  BeginStep(state, thread);
  return true;
}

void Explorer::TakeSteps(const State& state) {
  bool any = false;
  const auto took = [&](const State& next) {
    any = true;
    Reach(next);
  };
  for (std::size_t thread = 0; thread < programs_.size(); ++thread) {
    const Thread& t = state.threads[thread];
    for (std::size_t i = 0; i < t.stores; ++i) {
      if (!MayArrive(t, i)) continue;
      State next = state;
      Arrive(next, thread, i);
      took(next);
    }
    for (std::size_t other = 0; other < programs_.size(); ++other) {
      if ((t.passing >> other & 1) == 0) continue;
      State next = state;
      ArriveAll(next, other);
      Thread& caller = next.threads[thread];
      caller.passing =
          static_cast<std::uint8_t>(caller.passing & ~(1U << other));
      if (caller.passing == 0) GoOn(next, thread, 0);
      took(next);
    }
    State next = state;
    if (TakeStep(next, thread)) took(next);
  }
  if (!any) CheckEnd(state);
}

void Explorer::CheckEnd(const State& state) {
  for (std::size_t thread = 0; thread < programs_.size(); ++thread) {
    if (StepOf(state, thread) != nullptr) Fail("nobody can go on");
  }
  for (std::size_t lock = 0; lock < LockModel::kLocks; ++lock) {
    if (state.memory[calls_.taken(lock)] != 0) Fail("a lock word stays taken");
    if (state.memory[Counter(lock)] != state.counted[lock]) {
      Fail("what one thread did under the lock is lost on another");
    }
    const Value owner = state.memory[calls_.owner(lock)];
    bool is_known = owner == calls_.nobody() || owner == 0;
    for (std::size_t i = 0; i < Calls::kSlots; ++i) {
      is_known = is_known || owner == calls_.slot(i);
    }
    if (!is_known) Fail("the owner is no slot");
  }
  for (std::uint8_t variable = 0; calls_.IsHeld(variable); ++variable) {
    if (state.memory[variable] != 0) Fail("a slot names a lock at the end");
  }
}

void Explorer::Reach(const State& state) {
  if (seen_.insert(state).second) todo_.push_back(state);
}

LockModel::Result Explorer::Run() {
  State start;
  std::copy(calls_.initial().begin(), calls_.initial().end(),
            start.memory.begin());
  start.idle_slots = (1U << Calls::kSlots) - 1;
  for (std::size_t thread = 0; thread < programs_.size(); ++thread) {
    start.threads[thread].slot = 0;
    BeginStep(start, thread);
  }
  Reach(start);
  while (!todo_.empty() && result_.error.empty()) {
    const State state = todo_.back();
    todo_.pop_back();
    TakeSteps(state);
  }
  result_.states = seen_.size();
  return result_;
}

}  // namespace

LockModel::Program LockModel::Sections(std::size_t lock, int times) {
  Program program;
  for (int i = 0; i < times; ++i) {
    program.push_back({Do::kLock, lock});
    program.push_back({Do::kCount, lock});
    program.push_back({Do::kUnlock, lock});
  }
  return program;
}

LockModel::Result LockModel::Explore(const std::vector<Program>& programs,
                                     Memory memory, Fault fault) {
  return Explorer(programs, memory, fault).Run();
}

}  // namespace strata
