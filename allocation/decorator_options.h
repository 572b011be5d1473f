#ifndef STRATA_ALLOCATION_DECORATOR_OPTIONS_H_
#define STRATA_ALLOCATION_DECORATOR_OPTIONS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "strata/allocation/chain_stream.h"
#include "strata/platform/place.h"
#include "strata/platform/platform.h"

namespace strata {

class Budget;
class PlaceMeter;
class TraceSink;

// Which decorators a chain gets, and how they behave.
struct DecoratorOptions {
  bool stat = true;         // count requests and bytes in use
  bool stream_safe = true;  // honour RecordStream
  bool aligned = true;      // serve alignments above the strategy's own
  // Bytes that may be requested and live at once, per place; 0: no limit.
  std::size_t in_use_limit_bytes = 0;
  std::string trace_path;  // record every call to this file; "": none
  // Longest wait, in ms, of a request for others to free memory; not above 0:
  // none.
  std::int64_t retry_time_ms = 10000;
  bool retry_alone = false;  // wait even if no known thread could free
  // Rounds of out-of-memory callbacks per request; not above 1: one.
  std::int64_t callback_rounds = -1;
  // Which requests to the system fail, as in fault_allocator.h; "": none.
  std::string fault;
  bool exact_peak = false;  // keep the exact peak in use of a place
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
};

}  // namespace strata

#endif  // STRATA_ALLOCATION_DECORATOR_OPTIONS_H_
