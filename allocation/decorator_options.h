#ifndef STRATA_ALLOCATION_DECORATOR_OPTIONS_H_
#define STRATA_ALLOCATION_DECORATOR_OPTIONS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "strata/allocation/chain_stream.h"
#include "strata/platform/clock.h"
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

// Which decorators a chain gets, and how they behave.
struct DecoratorOptions {
  bool stat = true;         // count requests and bytes in use
  bool stream_safe = true;  // honour RecordStream
  // Have a stream wait, on the device, rather than grow, for memory that others
  // still use.
  bool cross_stream_wait = false;
  bool cuda_graph = true;  // keep memory for the graphs that use it
  bool aligned = true;     // serve alignments above the strategy's own
  // Bytes that may be requested and live at once, per place; 0: no limit.
  std::size_t in_use_limit_bytes = 0;
  std::string trace_path;           // record every call to this file; "": none
  std::string trace_events_path;    // the same as Chrome trace events
  std::string allocation_log_path;  // record what it is for here; "": nowhere
  // Longest wait, in ms, of a request for others to free memory; not above 0:
  // none.
  std::int64_t retry_time_ms = 10000;
  bool retry_alone = false;  // wait even if no known thread could free
  // Most rounds of out-of-memory callbacks per request, 0 is one; below 0: as
  // long as they change something.
  std::int64_t callback_rounds = -1;
  // Tell observers of a device of blocks even if none of them stays
  // (Device::observed_for_life).
  bool observe_blocks = false;
  // Which requests to the system fail, as in fault_allocator.h; "": none.
  std::string fault;
  bool exact_peak = false;  // keep the exact peak in use of a place
  // The lock of a stream: "word", or "biased", which the thread that uses it
  // may own, or "auto", which of them is faster here.
  std::string stream_lock = "auto";
  // Whether a thread may own it. Not where the system has no ProcessBarrier,
  // which is logged once if it was asked for by name.
  //
  // Errors: std::invalid_argument if it is none of these.
  bool biased_lock() const;
  // Look for writes outside blocks and uses of freed ones (guard_settings.h).
  bool guard = false;
  std::size_t guard_red_zone_bytes = 256;  // on each side of a block
  std::size_t guard_quarantine_bytes = std::size_t{64} << 20;  // per stream
  bool guard_poison = true;              // fill blocks when allocated and freed
  std::string guard_fill = "pattern";    // with what: pattern or nan
  std::string guard_on_error = "abort";  // or log
};

// What the layers of one chain share. Members may be null when a chain is built
// by hand: a layer then keeps its own.
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
  std::uint64_t own_hold = 0;  // order() of the graph pool that it is of
  std::shared_ptr<TimelineTable> timelines;  // of the facade
  std::shared_ptr<DeferredFrees> frees;      // of the place
  Clock* clock = &Clock::Steady();           // of waits and time stamps
};

}  // namespace strata

#endif  // STRATA_ALLOCATION_DECORATOR_OPTIONS_H_
