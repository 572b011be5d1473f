// Loads the shared library as PyTorch's pluggable allocator does, finds the
// functions of strata/bindings/torch/torch.h by name, and allocates from
// two threads. Prints the first error.

#include <dlfcn.h>

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string>
#include <thread>

namespace {

void Require(bool condition, const std::string& text) {
  if (condition) return;
  std::fprintf(stderr, "not so: %s\n", text.c_str());
  std::exit(1);
}

// The function `name` of the library.
template <class Function>
Function* Find(void* library, const char* name) {
  void* const symbol = dlsym(library, name);
  Require(symbol != nullptr, std::string("there is ") + name);
  Function* function = nullptr;
  std::memcpy(&function, &symbol, sizeof symbol);
  return function;
}

using Malloc = void*(std::size_t, int, void*);
using Free = void(void*, std::size_t, int, void*);

// A step of a program: frees all its allocations.
void Step(Malloc* allocate, Free* free, int device) {
  for (int i = 0; i < 1000; ++i) {
    void* const block = allocate(4096, device, nullptr);
    Require(block != nullptr, "4 KiB are there");
    free(block, 4096, device, nullptr);
  }
}

}  // namespace

int main() {
  setenv("STRATA_OPTIONS",
         "strata_platform=sim,strata_sim_devices=2,strata_sim_memory=64MiB",
         /*overwrite=*/1);
  void* const library = dlopen(STRATA_LIBRARY, RTLD_NOW | RTLD_LOCAL);
  Require(library != nullptr, "the library can be loaded");
  auto* const allocate = Find<Malloc>(library, "strata_torch_malloc");
  auto* const pool_malloc = Find<Malloc>(library, "strata_torch_pool_malloc");
  auto* const free = Find<Free>(library, "strata_torch_free");
  auto* const record_stream =
      Find<void(void*, void*)>(library, "strata_torch_record_stream");
  auto* const empty_cache = Find<void()>(library, "strata_torch_empty_cache");

  std::thread first([&] { Step(allocate, free, 0); });
  std::thread second([&] { Step(allocate, free, 1); });
  first.join();
  second.join();

  constexpr std::size_t kTooMuch = std::size_t{65} << 20;
  std::string text;
  try {
    allocate(kTooMuch, 0, nullptr);
  } catch (const std::bad_alloc& error) {
    text = error.what();
  }
  Require(text.find("cannot allocate 65.0 MiB on device:0") != text.npos,
          "the exception has the numbers: '" + text + "'");
  Require(pool_malloc(kTooMuch, 0, nullptr) == nullptr, "null for a MemPool");

  for (const char* name :
       {"strata_torch_begin_pool", "strata_torch_end_pool",
        "strata_torch_release_pool", "strata_torch_facade"}) {
    Find<void()>(library, name);
  }

  void* const block = allocate(4096, 1, nullptr);
  record_stream(block, reinterpret_cast<void*>(2));
  free(block, 4096, 1, nullptr);
  empty_cache();
  std::puts("PyTorch is served");
  return 0;
}
