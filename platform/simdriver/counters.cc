#include "strata/platform/simdriver/counters.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "strata/platform/simdriver/context.h"
#include "strata/platform/simdriver/host_reads.h"
#include "strata/platform/simdriver/process.h"

namespace strata::simdriver {
namespace {

// Lines of Python in a report.
constexpr std::size_t kReportedPlaces = 10;

std::atomic<std::uint64_t> g_skipped_kernels{0};
std::atomic<std::uint64_t> g_unimplemented_calls{0};
std::atomic<const char*> g_last_unimplemented{nullptr};

std::string StateText(Process& process) {
  SimPlatform& platform = process.platform;
  std::string text = platform.LeakReport();
  for (int ordinal = 0; ordinal < platform.device_count(); ++ordinal) {
    text += "peak " +
            std::to_string(platform.sim_device(ordinal).peak_used_bytes()) +
            "\n";
  }
  const Context* const context = CurrentContext();
  text += "context " +
          std::to_string(context != nullptr ? OrdinalOf(*context) : -1);
  // The only way to read the mode is to exchange it.
  CaptureMode mode = CaptureMode::kRelaxed;
  SimDevice& device = platform.sim_device(0);
  if (device.ThreadExchangeCaptureMode(&mode) == Status::kSuccess) {
    text += ", mode " + std::to_string(static_cast<int>(mode));
    device.ThreadExchangeCaptureMode(&mode);
  }
  return text;
}

}  // namespace

void CountSkippedKernel() {
  g_skipped_kernels.fetch_add(1, std::memory_order_relaxed);
}

CUresult Unimplemented(const char* name) {
  const CUresult result = Ready();
  if (result != CUDA_SUCCESS) return result;
  g_unimplemented_calls.fetch_add(1, std::memory_order_relaxed);
  g_last_unimplemented.store(name, std::memory_order_relaxed);
  return CUDA_ERROR_NOT_SUPPORTED;
}

int DescribeSimDriverState(char* text, std::size_t bytes) {
  const CUresult result = Ready();
  if (result != CUDA_SUCCESS) return result;
  const std::string state = StateText(*FindProcess());
  if (text == nullptr || state.size() >= bytes) return CUDA_ERROR_INVALID_VALUE;
  *std::copy(state.begin(), state.end(), text) = 0;
  return CUDA_SUCCESS;
}

// Exported for the stand-in of the runtime, so that its unimplemented calls are
// counted here, too.
CUresult CountUnimplemented(const char* name) __asm__(
    "cuStrataSimUnimplemented") STRATA_SIM_EXPORT;
CUresult CountUnimplemented(const char* name) { return Unimplemented(name); }

// Exported for the stand-ins of the math libraries.
void NoteLibraryKernel() __asm__("cuStrataSimNoteKernel") STRATA_SIM_EXPORT;
void NoteLibraryKernel() {
  if (Ready() == CUDA_SUCCESS) FindProcess()->platform.NoteUnknownKernel();
}

int DescribeSimDriver(SimDriverInfo* info) {
  if (info == nullptr || info->bytes != sizeof(SimDriverInfo)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  const CUresult result = Ready();
  if (result != CUDA_SUCCESS) return result;
  info->phantom_memory =
      FindProcess()->platform.device(0).caps().phantom_memory ? 1 : 0;
  info->unimplemented_calls =
      g_unimplemented_calls.load(std::memory_order_relaxed);
  info->skipped_kernels = g_skipped_kernels.load(std::memory_order_relaxed);
  info->last_unimplemented =
      g_last_unimplemented.load(std::memory_order_relaxed);
  const HostReads::Place reads = Reads().Total();
  info->host_reads = reads.all;
  info->written_host_reads = reads.written;
  return CUDA_SUCCESS;
}

std::string ReportText() {
  std::string text =
      std::to_string(g_skipped_kernels.load(std::memory_order_relaxed)) +
      " kernels did nothing\n";
  if (const char* const last =
          g_last_unimplemented.load(std::memory_order_relaxed)) {
    text +=
        std::to_string(g_unimplemented_calls.load(std::memory_order_relaxed)) +
        " calls of functions that do not exist here, the last of " + last +
        '\n';
  }
  const HostReads::Place reads = Reads().Total();
  text +=
      std::to_string(reads.all) +
      " copies to the host: " + std::to_string(reads.all - reads.unknown()) +
      " of bytes that the program wrote, " + std::to_string(reads.unknown()) +
      " of unknown bytes\n";
  for (const HostReads::Place& place : Reads().MostFrequent(kReportedPlaces)) {
    text += "  " + std::to_string(place.unknown()) + " of unknown bytes at " +
            place.line + '\n';
  }
  if (const std::uint64_t count = Reads().WithoutLine().unknown()) {
    text += "  " + std::to_string(count) + " of unknown bytes without a line\n";
  }
  return text;
}

void ReportAtExit() {
  std::atexit([] {
    if (IsForkedChild()) return;
    std::fprintf(stderr, "strata simdriver: process %d:\n%s",
                 static_cast<int>(getpid()), ReportText().c_str());
  });
}

int WriteReport(char* text, std::uint64_t bytes) {
  if (text == nullptr || bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  const CUresult result = Ready();
  if (result != CUDA_SUCCESS) return result;
  const std::string report = ReportText();
  const std::size_t count =
      std::min(report.size(), static_cast<std::size_t>(bytes - 1));
  report.copy(text, count);
  text[count] = '\0';
  return CUDA_SUCCESS;
}

}  // namespace strata::simdriver
