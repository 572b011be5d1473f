#ifndef STRATA_TESTS_TESTING_HAZARD_PROGRAM_H_
#define STRATA_TESTS_TESTING_HAZARD_PROGRAM_H_

#include <cstdint>
#include <map>
#include <ostream>
#include <random>
#include <set>
#include <vector>

#include "strata/platform/call_record.h"

namespace strata {

// How a program goes wrong.
enum class ProgramBreak : std::uint8_t {
  kNone,
  kMissingMark,       // a second stream uses a block, nobody says so
  kMissingWait,       // a block changes streams without a wait
  kStaleEvent,        // the event waited for is older than the last use
  kWrongStream,       // the event was recorded in another stream
  kRecordedAgain,     // the event stands for something else by now
  kNotReady,          // "not ready" is taken for "done"
  kUseAfterFree,      // a block used behind its free
  kEarlyFree,         // memory freed at once while work uses it
  kMissingHostEdge,   // a thread does not know what another one saw
  kStreamDestroyed,   // a stream goes before anyone waited for it
  kPoolBeforeAlloc,   // pool memory used beside its allocation
  kPoolEarlyFree,     // pool memory freed beside a use
  kUnmapInUse,        // memory unmapped while work uses it
  kAlias,             // one memory at two addresses without order
  kHostReuse,         // a pinned block goes to the host too early
  kCaptureReuse,      // a block reused by a node that is no descendant
  kDanglingInput,     // a graph's input is freed, and the graph launched
  kPrivateHandedOut,  // a graph's private block goes to somebody outside
  kPoolOverlap,       // graphs that share memory launched without order
  kGraphEarlyFree,    // a free node beside a use
  kCapturedEvent,     // an event of a capture taken for one of work
  kCount,
};

const char* ProgramBreakName(ProgramBreak kind);
inline std::ostream& operator<<(std::ostream& out, ProgramBreak kind) {
  return out << ProgramBreakName(kind);
}

// Seeded programs over streams, events, threads, blocks of a toy allocator,
// pools, mapped and pinned memory, captures and graphs, as the records of their
// calls. Addresses and sizes are multiples of HazardOracle::kGranuleBytes.
//
// Model: MakeProgram writes a row of episodes, each of which uses memory and
//   makes sure of its order in one of several ways. With a break, one of the
//   episodes leaves out what its name says; other calls may by chance do the
//   same service, so that an oracle has to tell whether the program is wrong.
std::vector<CallRecord> MakeProgram(std::uint64_t seed, ProgramBreak kind);

// The same without any intention: calls drawn at random that a device would
// accept, most of them hazards.
std::vector<CallRecord> MakeRandomProgram(std::uint64_t seed, int calls);

}  // namespace strata

#endif  // STRATA_TESTS_TESTING_HAZARD_PROGRAM_H_
