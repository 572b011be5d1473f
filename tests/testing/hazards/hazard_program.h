#ifndef STRATA_TESTS_TESTING_HAZARDS_HAZARD_PROGRAM_H_
#define STRATA_TESTS_TESTING_HAZARDS_HAZARD_PROGRAM_H_

#include <cstdint>
#include <map>
#include <ostream>
#include <random>
#include <set>
#include <vector>

#include "strata/platform/calls/call_record.h"

namespace strata {

// The fault of a program.
enum class ProgramBreak : std::uint8_t {
  kNone,
  kMissingMark,       // a second stream uses a block without a mark
  kMissingWait,       // a block changes streams without a wait
  kStaleEvent,        // the awaited event is older than the last use
  kWrongStream,       // the event was recorded in another stream
  kRecordedAgain,     // the event was recorded again for other work
  kNotReady,          // "not ready" is treated as "done"
  kUseAfterFree,      // a block is used after its free
  kEarlyFree,         // memory is freed at once while work uses it
  kMissingHostEdge,   // a thread relies on a wait of another thread
  kStreamDestroyed,   // a stream is destroyed before a wait for it
  kPoolBeforeAlloc,   // pool memory is used unordered with its allocation
  kPoolEarlyFree,     // pool memory is freed unordered with a use
  kUnmapInUse,        // memory is unmapped while work uses it
  kAlias,             // two addresses of one memory, used without order
  kHostReuse,         // the host reuses a pinned block too early
  kCaptureReuse,      // a node that is no descendant reuses a block
  kDanglingInput,     // a graph is launched after the free of its input
  kPrivateHandedOut,  // code outside gets a graph's private block
  kPoolOverlap,       // graphs that share memory launch without order
  kGraphEarlyFree,    // a free node is unordered with a use
  kCapturedEvent,     // a captured event is treated as one of work
  kCount,
};

const char* ProgramBreakName(ProgramBreak kind);
inline std::ostream& operator<<(std::ostream& out, ProgramBreak kind) {
  return out << ProgramBreakName(kind);
}

// Seeded programs, as the records of their calls. They use streams, events,
// threads, blocks of a toy allocator, pools, mapped and pinned memory, captures
// and graphs. Addresses and sizes are multiples of HazardOracle::kGranuleBytes.
//
// Model: MakeProgram writes a sequence of episodes. Each episode uses memory,
//   and ensures the order in one of several ways. With a break, one episode
//   omits the step that the name of the break describes. Other calls may
//   provide the same order by chance, so an oracle must decide whether the
//   program is wrong.
std::vector<CallRecord> MakeProgram(std::uint64_t seed, ProgramBreak kind);

// A program of random calls that a device would accept, without any plan. Most
// of them are hazards.
std::vector<CallRecord> MakeRandomProgram(std::uint64_t seed, int calls);

}  // namespace strata

#endif  // STRATA_TESTS_TESTING_HAZARDS_HAZARD_PROGRAM_H_
