#include "strata/tools/bench/subject.h"

#include <ctime>
#include <utility>

#include "strata/platform/registry.h"
#include "strata/tools/bench/heaps/driver_heap.h"
#include "strata/tools/bench/heaps/heaps.h"
#include "strata/tools/bench/heaps/library_heap.h"
#include "strata/tools/bench/subjects.h"

namespace strata::tools {
namespace {

std::size_t StreamCount(const BenchWorkload& workload) {
  return workload.threads == BenchWorkload::Threads::kOwnStreams
             ? workload.thread_count
             : 1;
}

// Wall time for a driver, which may wait for its hardware without using the
// processor.
BenchClock ClockFor(const Options& options) {
  return MakePlatform(options.platform)->device(0).caps().simulated
             ? BenchClock::kThread
             : BenchClock::kWall;
}

// The subject for the workload's threads; `arguments` are the heap's.
template <class Heap, class... Arguments>
std::unique_ptr<BenchSubject> MakeOn(const BenchWorkload& workload,
                                     BenchScript script, BenchClock clock,
                                     const std::vector<int>& cores,
                                     const Arguments&... arguments) {
  using Threads = BenchWorkload::Threads;
  switch (workload.threads) {
    case Threads::kOne:
      break;
    case Threads::kOwnStreams:
    case Threads::kOneStream:
      return std::make_unique<TeamSubject<Heap>>(
          workload.thread_count, workload.threads == Threads::kOwnStreams,
          cores, std::move(script), arguments...);
    case Threads::kHandOver:
      return std::make_unique<HandOverSubject<Heap>>(cores, std::move(script),
                                                     arguments...);
  }
  return std::make_unique<OneThreadSubject<Heap>>(clock, std::move(script),
                                                  arguments...);
}

}  // namespace

std::chrono::nanoseconds TimeOn(BenchClock clock) {
  timespec time = {};
  clock_gettime(
      clock == BenchClock::kThread ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC,
      &time);
  return std::chrono::seconds(time.tv_sec) +
         std::chrono::nanoseconds(time.tv_nsec);
}

std::unique_ptr<BenchSubject> MakeBenchSubject(const BenchAllocator& allocator,
                                               const BenchWorkload& workload,
                                               BenchScript script,
                                               const Options& options,
                                               const std::vector<int>& cores) {
  using Kind = BenchAllocator::Kind;
  const std::size_t streams = StreamCount(workload);
  const BenchClock clock = ClockFor(options);
  switch (allocator.kind) {
    case Kind::kNull:
      break;
    case Kind::kLock:
      return MakeOn<LockedNullHeap>(workload, std::move(script), clock, cores,
                                    streams);
    case Kind::kFacade:
      return MakeOn<FacadeHeap>(workload, std::move(script), clock, cores,
                                OptionsOf(allocator, options), streams);
    case Kind::kCAbi:
      return MakeOn<CAbiHeap>(workload, std::move(script), clock, cores,
                              OptionsOf(allocator, options), streams);
    case Kind::kPeer:
      return MakeOn<PeerHeap>(workload, std::move(script), clock, cores,
                              allocator.name, options, streams);
    case Kind::kDriver:
    case Kind::kDriverPool:
      return MakeOn<DriverHeap>(workload, std::move(script), clock, cores,
                                allocator.kind == Kind::kDriver
                                    ? DriverHeap::Calls::kMalloc
                                    : DriverHeap::Calls::kMallocAsync,
                                options, streams);
    case Kind::kLibrary:
      return MakeOn<LibraryHeap>(workload, std::move(script), clock, cores,
                                 allocator.library, options, streams);
    case Kind::kMalloc:
      return MakeOn<MallocHeap>(workload, std::move(script), clock, cores);
  }
  return MakeOn<NullHeap>(workload, std::move(script), clock, cores);
}

}  // namespace strata::tools
