#ifndef STRATA_ALLOCATION_DECORATORS_DECORATOR_OPTIONS_H_
#define STRATA_ALLOCATION_DECORATORS_DECORATOR_OPTIONS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "strata/allocation/streams/chain_stream.h"
#include "strata/base/clock.h"
#include "strata/platform/place.h"
#include "strata/platform/platform.h"

namespace strata {

class AllocationLog;
class Budget;
class CaptureHolds;
class DeferredFrees;
class EventSink;
class GuardReporter;
class PlaceMeter;
class Reclaimer;
class TimelineTable;
class TraceSink;

// The decorators of a chain and their options.
struct DecoratorOptions {
  bool stat = true;         // count requests and bytes in use
  bool stream_safe = true;  // record the streams of RecordStream
  // Before growth, reuse memory that other streams still use: make the stream
  // wait for them on the device.
  bool cross_stream_wait = false;
  bool cuda_graph = true;  // keep memory for the graphs that use it
  bool aligned = true;     // serve alignments above the strategy's own
  // Most bytes requested and live at once, per place; 0: no limit.
  std::size_t in_use_limit_bytes = 0;
  std::string trace_path;  // record every call to this file; "": none
  // record every call as Chrome trace events; "": none
  std::string trace_events_path;
  // Record the purpose of allocations here; "": none.
  std::string allocation_log_path;
  // Longest wait in ms of a request for other threads to free memory; 0 or
  // less: no wait.
  std::int64_t retry_time_ms = 10000;
  bool retry_alone = false;  // wait even if no known thread could free
  // Most rounds of out-of-memory callbacks per request. 0 means one round.
  // Below 0: as many rounds as change something.
  std::int64_t callback_rounds = -1;
  // Report blocks to the observers of a device even if all observers are
  // temporary (Device::observed_for_life).
  bool observe_blocks = false;
  // The requests to the system that fail, as in fault_allocator.h; "": none.
  std::string fault;
  bool exact_peak = false;  // keep the exact peak in use of a place
  // Kind of the lock of a stream: "word"; "biased", which the thread that uses
  // it may own; or "auto", the faster of them on this machine.
  std::string stream_lock = "auto";
  // True if a thread may own the lock. False if the system has no
  // ProcessBarrier. This is logged once if the option is "biased".
  //
  // Errors: std::invalid_argument if `stream_lock` is none of these.
  bool biased_lock() const;
  // Detect writes outside blocks and uses of freed blocks (guard_settings.h).
  bool guard = false;
  std::size_t guard_red_zone_bytes = 256;  // on each side of a block
  std::size_t guard_quarantine_bytes = std::size_t{64} << 20;  // per stream
  bool guard_poison = true;              // fill blocks when allocated and freed
  std::string guard_fill = "pattern";    // content of the fill: pattern or nan
  std::string guard_on_error = "abort";  // or log
};

// Objects that the layers of one chain share. Members may be null in a chain
// built by hand; then a layer makes its own.
struct ChainContext {
  Place place;
  std::shared_ptr<Platform> platform;
  std::shared_ptr<ChainStream> stream;
  std::shared_ptr<Budget> budget;         // of the place, for Limit
  std::shared_ptr<PlaceMeter> meter;      // of the place, for exact_peak
  std::shared_ptr<TraceSink> trace_sink;  // of the facade
  std::shared_ptr<EventSink> event_sink;  // of the facade
  std::shared_ptr<Reclaimer> reclaimer;   // of the place
  std::shared_ptr<GuardReporter> guard_reporter;  // of the place
  std::shared_ptr<AllocationLog> allocation_log;  // of the facade
  std::shared_ptr<CaptureHolds> captures;         // of the facade
  std::uint64_t own_hold = 0;  // order() of the graph pool of this chain
  std::shared_ptr<TimelineTable> timelines;  // of the facade
  std::shared_ptr<DeferredFrees> frees;      // of the place
  Clock* clock = &Clock::Steady();           // for waits and time stamps
};

}  // namespace strata

#endif  // STRATA_ALLOCATION_DECORATORS_DECORATOR_OPTIONS_H_
