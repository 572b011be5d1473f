#include "strata/allocation/diagnostics/allocation_log.h"

#include <cinttypes>
#include <cstdio>

#include "strata/allocation/allocator.h"
#include "strata/allocation/diagnostics/annotation.h"
#include "strata/base/json_text.h"

namespace strata {

AllocationLog::AllocationLog(const std::string& path)
    : file_("strata_allocation_log_file", path) {}

void AllocationLog::Begin(const char* event) {
  std::fprintf(file_.get(), R"({"event":"%s","step_id":%)" PRId64, event,
               AnnotationStep());
  Text("op", AnnotationOp());
}

void AllocationLog::End() {
  std::fputs("}\n", file_.get());
  file_.EndEntry();
}

void AllocationLog::Text(const char* key, const char* value) {
  std::fprintf(file_.get(), R"(,"%s":)", key);
  WriteJsonString(file_.get(), value);
}

void AllocationLog::Number(const char* key, std::uint64_t value) {
  std::fprintf(file_.get(), R"(,"%s":%)" PRIu64, key, value);
}

void AllocationLog::Memory(const Allocation& allocation,
                           const Allocator& allocator,
                           std::uint64_t allocation_id) {
  Text("allocator", CarvingLayer(allocator).name());
  Text("place", ToString(allocation.place()).c_str());
  std::fprintf(file_.get(), R"(,"address":"0x%)" PRIxPTR R"(")",
               reinterpret_cast<std::uintptr_t>(allocation.data()));
  Number("allocation_id", allocation_id);
}

void AllocationLog::RecordStep(const char* handle) noexcept {
  const std::lock_guard<std::mutex> guard(mutex_);
  Begin("step");
  Text("handle", handle);
  End();
}

std::uint64_t AllocationLog::Allocated(const char* event,
                                       const Allocation& allocation,
                                       const Allocator& allocator,
                                       const char* dtype,
                                       const char* shape) noexcept {
  const std::lock_guard<std::mutex> guard(mutex_);
  Begin(event);
  Memory(allocation, allocator, ++last_id_);
  Number("bytes", allocation.size());
  Number("requested_bytes", allocation.requested_bytes());
  if (dtype != nullptr) Text("dtype", dtype);
  if (shape != nullptr) Text("shape", shape);
  End();
  return last_id_;
}

void AllocationLog::Deallocated(const char* event, std::uint64_t allocation_id,
                                const Allocation& allocation,
                                const Allocator& allocator) noexcept {
  const std::lock_guard<std::mutex> guard(mutex_);
  Begin(event);
  Memory(allocation, allocator, allocation_id);
  End();
}

}  // namespace strata
