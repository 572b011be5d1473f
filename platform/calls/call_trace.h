#ifndef STRATA_PLATFORM_CALLS_CALL_TRACE_H_
#define STRATA_PLATFORM_CALLS_CALL_TRACE_H_

#include <mutex>
#include <string>

#include "strata/base/recording_file.h"
#include "strata/platform/calls/call_record.h"
#include "strata/platform/platform.h"

namespace strata {

// The header of a trace, and one call as one of its lines (no end of line).
inline constexpr const char* kCallTraceHeader =
    "Time_ns,Thread,Device,Call,Pointer,Bytes,Value,Stream,Status,Node";
std::string ToCsv(const CallRecord& record);

// A file with one line for each call that reached a device, in the order in
// which the calls were observed.
//
// Model: comma-separated values, kCallTraceHeader first. Pointer, Value and
//   Node are hexadecimal ("0x0": none); the rest is decimal. Node is the graph
//   node that the call became. Call is a name of device_calls.def or
//   device_events.def, which explains its fields. Status is a number. The
//   meaning of Pointer, Bytes and Value per call:
//
//   calls                           | Pointer | Bytes  | Value
//   --------------------------------|---------|--------|---------------------
//   allocate memory                 | address | size   | flags, pool
//   free, look up, unregister       | address |        |
//   stream_create, wrap_stream      | handle  |        | flags
//
//   event_*, stream_wait_event      | event   |        | flags
//   memcpy_async                    | target  | size   | source
//   memset_async                    | address | size   | byte
//   enable_, can_access_peer        |         |        | peer
//
//   pool_*, default_mem_pool        | pool    | amount | attribute, share
//                                   |         |        | type, descriptors
//   granularity                     |         |        | 1: recommended
//   reserve_range                   | address | size   | alignment
//   free_range, unmap_range         | address | size   |
//
//   create_, release_, import_,     | handle  | size   | device, share type
//   export_memory                   |         |        |
//   map_range, retain_memory        | address | size   | handle
//   set_access, get_access          | address | size   | descriptors, device
//
//   stream_begin_, end_capture      | graph   |        | mode
//   stream_is_capturing, _capture_  | graph   |        | status
//   info                            |         |        |
//   stream_update_capture_          | graph   |        | 1: replaced
//   dependencies                    |         |        |
//   graph_mem_attribute             |         | amount | attribute
//   graph_*, user_object_*          | handle  | amount | other handle
//
// Errors: as RecordingFile.
// Threads: any thread. The lines of one thread are in the order of its calls.
// Cost: one formatted line in a buffer, under a lock.
class CallTrace {
 public:
  explicit CallTrace(const std::string& path);

  void Write(const CallRecord& record);

 private:
  std::mutex mutex_;
  RecordingFile file_;  // guarded by mutex_
};

// Makes the devices of `platform` write their calls to `path` from now on. The
// file is complete when the devices are destroyed.
//
// Errors: as CallTrace.
void TraceCalls(Platform& platform, const std::string& path);

}  // namespace strata

#endif  // STRATA_PLATFORM_CALLS_CALL_TRACE_H_
