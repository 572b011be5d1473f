#ifndef STRATA_PLATFORM_SIMDRIVER_SIM_DRIVER_INFO_H_
#define STRATA_PLATFORM_SIMDRIVER_SIM_DRIVER_INFO_H_

#include <cstddef>
#include <cstdint>

namespace strata {

// The name under which the lookup of the stand-in driver answers with a
// SimDriverInfoFunction. A driver of a GPU does not find it.
inline constexpr char kSimDriverInfoName[] = "cuStrataSimDriverInfo";

// State of the stand-in driver in this process.
struct SimDriverInfo {
  // In: sizeof(SimDriverInfo) as the caller was compiled.
  std::uint64_t bytes = sizeof(SimDriverInfo);
  // 1 if device memory does not store written bytes.
  std::uint64_t phantom_memory = 0;
  // Calls so far of functions that the stand-in does not implement.
  std::uint64_t unimplemented_calls = 0;
  // Kernels that the program launched or captured. They did nothing. A launch
  // of a graph does not count.
  std::uint64_t skipped_kernels = 0;
  // The function of the last unimplemented call, or null. Static.
  const char* last_unimplemented = nullptr;
  // Copies of device memory to the host. Kernels compute nothing, so sizes that
  // a program reads from the device are too small.
  std::uint64_t host_reads = 0;
  // Copies in `host_reads` of bytes that the program wrote.
  std::uint64_t written_host_reads = 0;
};

// Returns a CUresult: 1 unless `info->bytes` is the size that it knows.
using SimDriverInfoFunction = int (*)(SimDriverInfo* info);

// The name under which the lookup answers with a SimDriverReportFunction.
inline constexpr char kSimDriverReportName[] = "cuStrataSimReport";

// Writes a report in lines, cut to `bytes` bytes with the final null. Returns a
// CUresult.
using SimDriverReportFunction = int (*)(char* text, std::uint64_t bytes);

// The name under which the lookup answers with a SimDriverStateFunction.
inline constexpr char kSimDriverStateName[] = "cuStrataSimDriverState";

// Writes the state of the driver as text, for tests: per device the memory in
// use and the objects that were created and not destroyed, then the peak of the
// memory in use, then the context and the capture mode of the calling thread.
// The mode is missing in a host function and after a sticky error, because
// device 0 then refuses the call that exchanges it. Pending work may run, as in
// that call.
//
// Returns a CUresult: 1 if the text and its final 0 do not fit in `bytes`.
using SimDriverStateFunction = int (*)(char* text, std::size_t bytes);

}  // namespace strata

#endif  // STRATA_PLATFORM_SIMDRIVER_SIM_DRIVER_INFO_H_
