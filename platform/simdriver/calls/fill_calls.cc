// Fills of memory.

#include <cstdint>
#include <cstring>
#include <mutex>
#include <set>
#include <tuple>

#include "strata/platform/device_work.h"
#include "strata/platform/simdriver/context.h"

namespace strata::simdriver {
namespace {

// `count` elements of `bytes` bytes each.
struct Pattern {
  std::uint32_t element = 0;
  std::size_t bytes = 0;
  std::size_t count = 0;

  friend bool operator<(const Pattern& a, const Pattern& b) {
    return std::tie(a.element, a.bytes, a.count) <
           std::tie(b.element, b.bytes, b.count);
  }
};

// Returns a copy of `pattern` that is never freed. Work reads it when it runs,
// and at each launch of a graph. Equal patterns share a copy.
void* Keep(const Pattern& pattern) {
  static auto* const mutex = new std::mutex();
  static auto* const kept = new std::set<Pattern>();
  std::lock_guard lock(*mutex);
  return const_cast<Pattern*>(&*kept->insert(pattern).first);
}

// HostKernel.
void Write(void* argument, void* const* ranges) {
  const Pattern& pattern = *static_cast<const Pattern*>(argument);
  auto* out = static_cast<char*>(ranges[0]);
  for (std::size_t i = 0; i < pattern.count; ++i, out += pattern.bytes) {
    std::memcpy(out, &pattern.element, pattern.bytes);
  }
}

// Fills elements of two or four bytes.
CUresult FillElements(NullStream null, DevicePtr ptr, const Pattern& pattern,
                      CUstream handle) {
  const auto byte = static_cast<unsigned char>(pattern.element);
  const std::uint32_t ones = pattern.bytes == 2 ? 0x0101u : 0x01010101u;
  const std::size_t bytes = pattern.count * pattern.bytes;
  const bool is_valid =
      ptr % pattern.bytes == 0 && bytes / pattern.bytes == pattern.count;
  return OnStream(null, handle, [&](SimDevice& device, const Stream& stream) {
    if (!is_valid) return Status::kInvalidValue;
    if (bytes == 0) return Status::kSuccess;
    if (pattern.element == byte * ones) {
      return device.MemsetAsync(ptr, byte, bytes, stream);
    }
    const WorkRange range{ptr, bytes, true};
    return FindProcess()
        ->platform.work(stream.device)
        ->Launch(stream, &range, 1, &Write, Keep(pattern));
  });
}

}  // namespace

CUresult MemsetD8(NullStream null, CUdeviceptr ptr, unsigned char value,
                  std::size_t count) {
  return MemsetD8Async(null, ptr, value, count, nullptr);
}

CUresult MemsetD8Async(NullStream null, CUdeviceptr ptr, unsigned char value,
                       std::size_t count, CUstream handle) {
  return OnStream(null, handle, [&](SimDevice& device, const Stream& stream) {
    if (count == 0) return Status::kSuccess;
    return device.MemsetAsync(ptr, value, count, stream);
  });
}

CUresult MemsetD16(NullStream null, CUdeviceptr ptr, std::uint16_t value,
                   std::size_t count) {
  return FillElements(null, ptr, Pattern{value, 2, count}, nullptr);
}

CUresult MemsetD16Async(NullStream null, CUdeviceptr ptr, std::uint16_t value,
                        std::size_t count, CUstream stream) {
  return FillElements(null, ptr, Pattern{value, 2, count}, stream);
}

CUresult MemsetD32(NullStream null, CUdeviceptr ptr, unsigned value,
                   std::size_t count) {
  return FillElements(null, ptr, Pattern{value, 4, count}, nullptr);
}

CUresult MemsetD32Async(NullStream null, CUdeviceptr ptr, unsigned value,
                        std::size_t count, CUstream stream) {
  return FillElements(null, ptr, Pattern{value, 4, count}, stream);
}

}  // namespace strata::simdriver
