#ifndef STRATA_TESTS_TESTING_LOCK_MODEL_H_
#define STRATA_TESTS_TESTING_LOCK_MODEL_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace strata {

// Runs BiasedLockCore, the very code of BiasedLock, with two or three threads
// in every order of their accesses to memory, and says what goes wrong.
//
// Model: a state is what memory holds, the stores of each thread that are still
//   on their way, and how far each thread is. To know what a thread does next,
//   the call that it is in is run again from its start, with the results that
//   its accesses had so far; each new beginning of a call is run once. A
//   thread's stores reach memory later, at any time: in their order (kTso), or
//   (kWeak) a relaxed store before or after any other, a release store after
//   all that precede it, where an exchange lets earlier stores wait. A barrier
//   has the other threads' stores arrive, for each at a moment of its own while
//   it lasts. A wait is a step that cannot be taken yet. What the lock word
//   guards is read and written at once, and seen to be with the lock word.
//   Loads are not reordered: all that matter acquire.
// Threads: one.
class LockModel {
 public:
  static constexpr std::size_t kMaxThreads = 3;
  static constexpr std::size_t kLocks = 2;

  enum class Memory : std::uint8_t { kTso, kWeak };
  // What is left out of the algorithm.
  enum class Fault : std::uint8_t { kNone, kBarrier, kSecondLook, kWait };

  enum class Do : std::uint8_t {
    kLock,
    kTryLock,         // on failure goes on behind the next kUnlock of the lock
    kEnterAtOnce,     // the same
    kTakeWordAtOnce,  // the same
    kTryLockUnowned,  // the same
    kUnlock,
    kRenew,
    kCount,  // adds one to the counter of the lock: a load and a store
    kEnd,    // the thread ends, and another one takes its place
  };
  struct Step {
    Do what;
    std::size_t lock = 0;
  };
  using Program = std::vector<Step>;
  // Lock, count and unlock, `times` times.
  static Program Sections(std::size_t lock, int times);

  struct Result {
    std::size_t states = 0;
    std::string error;  // the first; "": none, in any order
    // What happened in some order: that a thread entered as the owner; took
    // back an entry because it was no owner any more; removed an owner; entered
    // as the owner after an earlier owner had been removed; entered a lock that
    // the thread before it, with its slot, had owned.
    bool entered = false;
    bool undone = false;
    bool removed = false;
    bool entered_again = false;
    bool inherited = false;
    bool try_failed = false;
    bool gave_up = false;  // it could not have an owner any more
    bool renewed = false;  // and then it could again
  };

  // A program for each thread.
  static Result Explore(const std::vector<Program>& programs, Memory memory,
                        Fault fault = Fault::kNone);
};

inline LockModel::Program operator+(LockModel::Program a,
                                    const LockModel::Program& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

}  // namespace strata

#endif  // STRATA_TESTS_TESTING_LOCK_MODEL_H_
