#include "strata/tests/testing/heap_call_counter.h"

#include <cstdlib>
#include <limits>
#include <new>

namespace {

thread_local constinit std::uint64_t t_heap_calls = 0;

// The settings of HeapFailure.
struct Failing {
  std::uint64_t first = 0;  // number of the first call to fail; 0: none
  std::uint64_t last = 0;
  std::uint64_t calls = 0;
  int pauses = 0;

  bool Now() {
    if (pauses != 0) return false;
    ++calls;
    return first != 0 && calls >= first && calls <= last;
  }
};
thread_local constinit Failing t_failing;

void* Take(std::size_t bytes, std::size_t alignment) noexcept {
  ++t_heap_calls;
  if (t_failing.Now()) return nullptr;
  void* ptr = nullptr;
  if (posix_memalign(&ptr, alignment, bytes != 0 ? bytes : 1) != 0) {
    return nullptr;
  }
  return ptr;
}

void* TakeOrThrow(std::size_t bytes, std::size_t alignment) {
  void* ptr = Take(bytes, alignment);
  if (ptr == nullptr) throw std::bad_alloc();
  return ptr;
}

void Give(void* ptr) noexcept {
  if (ptr == nullptr) return;
  ++t_heap_calls;
  std::free(ptr);
}

constexpr std::size_t kPlain = __STDCPP_DEFAULT_NEW_ALIGNMENT__;

std::size_t Of(std::align_val_t alignment) {
  return static_cast<std::size_t>(alignment);
}

void CountTaken(const volatile void* /*ptr*/, std::size_t /*bytes*/) {
  ++t_heap_calls;
}
void CountGiven(const volatile void* /*ptr*/) { ++t_heap_calls; }

}  // namespace

// Null without a sanitizer's runtime.
// NOLINTNEXTLINE(bugprone-reserved-identifier): the runtime's name
extern "C" [[gnu::weak]] int __sanitizer_install_malloc_and_free_hooks(
    void (*taken)(const volatile void*, std::size_t),
    void (*given)(const volatile void*));

// A sanitizer's runtime defines its own operators, which may be strong. So the
// operators below are weak, and the runtime is asked to report its calls.
[[gnu::weak]] void* operator new(std::size_t bytes) {
  return TakeOrThrow(bytes, kPlain);
}
[[gnu::weak]] void* operator new[](std::size_t bytes) {
  return TakeOrThrow(bytes, kPlain);
}
[[gnu::weak]] void* operator new(std::size_t bytes,
                                 const std::nothrow_t&) noexcept {
  return Take(bytes, kPlain);
}
[[gnu::weak]] void* operator new[](std::size_t bytes,
                                   const std::nothrow_t&) noexcept {
  return Take(bytes, kPlain);
}
[[gnu::weak]] void* operator new(std::size_t bytes,
                                 std::align_val_t alignment) {
  return TakeOrThrow(bytes, Of(alignment));
}
[[gnu::weak]] void* operator new[](std::size_t bytes,
                                   std::align_val_t alignment) {
  return TakeOrThrow(bytes, Of(alignment));
}
[[gnu::weak]] void* operator new(std::size_t bytes, std::align_val_t alignment,
                                 const std::nothrow_t&) noexcept {
  return Take(bytes, Of(alignment));
}
[[gnu::weak]] void* operator new[](std::size_t bytes,
                                   std::align_val_t alignment,
                                   const std::nothrow_t&) noexcept {
  return Take(bytes, Of(alignment));
}
[[gnu::weak]] void operator delete(void* ptr) noexcept { Give(ptr); }
[[gnu::weak]] void operator delete[](void* ptr) noexcept { Give(ptr); }
[[gnu::weak]] void operator delete(void* ptr, std::size_t) noexcept {
  Give(ptr);
}
[[gnu::weak]] void operator delete[](void* ptr, std::size_t) noexcept {
  Give(ptr);
}
[[gnu::weak]] void operator delete(void* ptr, const std::nothrow_t&) noexcept {
  Give(ptr);
}
[[gnu::weak]] void operator delete[](void* ptr,
                                     const std::nothrow_t&) noexcept {
  Give(ptr);
}
[[gnu::weak]] void operator delete(void* ptr, std::align_val_t) noexcept {
  Give(ptr);
}
[[gnu::weak]] void operator delete[](void* ptr, std::align_val_t) noexcept {
  Give(ptr);
}
[[gnu::weak]] void operator delete(void* ptr, std::size_t,
                                   std::align_val_t) noexcept {
  Give(ptr);
}
[[gnu::weak]] void operator delete[](void* ptr, std::size_t,
                                     std::align_val_t) noexcept {
  Give(ptr);
}
[[gnu::weak]] void operator delete(void* ptr, std::align_val_t,
                                   const std::nothrow_t&) noexcept {
  Give(ptr);
}
[[gnu::weak]] void operator delete[](void* ptr, std::align_val_t,
                                     const std::nothrow_t&) noexcept {
  Give(ptr);
}

namespace strata {

HeapCallCounter::HeapCallCounter() {
  if (__sanitizer_install_malloc_and_free_hooks != nullptr) {
    static const int installed =
        __sanitizer_install_malloc_and_free_hooks(&CountTaken, &CountGiven);
    static_cast<void>(installed);
  }
  start_ = t_heap_calls;
}

std::uint64_t HeapCallCounter::calls() const { return t_heap_calls - start_; }

HeapFailure::Pause::Pause() { ++t_failing.pauses; }
HeapFailure::Pause::~Pause() { --t_failing.pauses; }

HeapFailure::HeapFailure(std::uint64_t nth, Lasts lasts) {
  const bool is_endless = lasts == Lasts::kFromThenOn && nth != 0;
  t_failing = {
      nth, is_endless ? std::numeric_limits<std::uint64_t>::max() : nth, 0, 0};
}
HeapFailure::~HeapFailure() { t_failing = {}; }

std::uint64_t HeapFailure::calls() const { return t_failing.calls; }
bool HeapFailure::is_possible() {
  return __sanitizer_install_malloc_and_free_hooks == nullptr;
}

}  // namespace strata
