#ifndef STRATA_TESTS_TESTING_MODELS_LOCK_MODEL_H_
#define STRATA_TESTS_TESTING_MODELS_LOCK_MODEL_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace strata {

// Runs BiasedLockCore, the same code as in BiasedLock, with two or three
// threads in every order of their memory accesses, and reports errors.
//
// Model: a state is the content of memory, the pending stores of each thread,
//   and the progress of each thread.
//   - To find a thread's next access, its current call runs again from the
//     start with the results of its earlier accesses. Each distinct beginning
//     of a call runs once.
//   - A store reaches memory at any later time. kTso: in program order. kWeak:
//     a relaxed store may pass any other store; a release store arrives after
//     all earlier ones; an exchange does not flush earlier stores.
//   - A barrier makes the stores of the other threads arrive, for each thread
//     at its own time during the barrier.
//   - A wait is a step that cannot be taken yet.
//   - The data that the lock word guards is read and written at once, and
//     becomes visible with the lock word.
//   - Loads are not reordered: all relevant loads are acquire loads.
// Threads: one.
class LockModel {
 public:
  static constexpr std::size_t kMaxThreads = 3;
  static constexpr std::size_t kLocks = 2;

  enum class Memory : std::uint8_t { kTso, kWeak };
  // The part of the algorithm that is left out.
  enum class Fault : std::uint8_t { kNone, kBarrier, kSecondLook, kWait };

  enum class Do : std::uint8_t {
    kLock,
    kTryLock,  // on failure continues behind the lock's next kUnlock
    kUnlock,
    kCount,  // adds one to the lock's counter: a load and a store
    kEnd,    // the thread ends, and another one replaces it
  };
  struct Step {
    Do what;
    std::size_t lock = 0;
  };
  using Program = std::vector<Step>;
  // `times` times: lock, count and unlock.
  static Program Sections(std::size_t lock, int times);

  struct Result {
    std::size_t states = 0;
    std::string error;  // the first one; "": none, in any order
    // Events that happened in some order. A thread entered as the owner; took
    // back an entry because it was no longer the owner; removed an owner;
    // entered as the owner after the removal of an earlier owner; entered a
    // lock that the previous thread of its slot owned.
    bool entered = false;
    bool undone = false;
    bool removed = false;
    bool entered_again = false;
    bool inherited = false;
    bool try_failed = false;
    bool tried_word = false;   // TryLock acquired the word of a biasable lock
    bool tried_owner = false;  // TryLock entered as the owner
    bool gave_up = false;      // the lock allowed no owner any more
  };

  // One program for each thread.
  static Result Explore(const std::vector<Program>& programs, Memory memory,
                        Fault fault = Fault::kNone);
};

inline LockModel::Program operator+(LockModel::Program a,
                                    const LockModel::Program& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

}  // namespace strata

#endif  // STRATA_TESTS_TESTING_MODELS_LOCK_MODEL_H_
