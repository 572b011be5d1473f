// Loads 20 libraries with thread-local memory, then 20 modules with the static
// library in them, then 20 copies of the shared library, and uses each in two
// threads. After dlclose the copies are not mapped, and a thread that used one
// can end.
//
// usage: program FOLDER

#include <dlfcn.h>
#include <strata.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <latch>
#include <string>
#include <thread>
#include <vector>

#define EXPECT(condition)                                          \
  do {                                                             \
    if (!(condition)) {                                            \
      std::fprintf(stderr, "line %d: %s\n", __LINE__, #condition); \
      std::exit(1);                                                \
    }                                                              \
  } while (0)

namespace {

constexpr int kCopies = 20;

// Loads a copy of a library, which is another library to the linker.
void* LoadCopy(const std::string& library, const std::string& folder,
               const std::string& name) {
  const std::string path = folder + "/" + name + ".so";
  std::filesystem::copy_file(library, path,
                             std::filesystem::copy_options::overwrite_existing);
  void* const handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) std::fprintf(stderr, "%s\n", dlerror());
  EXPECT(handle != nullptr);
  return handle;
}

template <class Function>
Function* Find(void* library, const char* name) {
  void* const symbol = dlsym(library, name);
  EXPECT(symbol != nullptr);
  return reinterpret_cast<Function*>(symbol);
}

void UseLibrary(void* library) {
  auto* const create = Find<decltype(strata_create)>(library, "strata_create");
  auto* const alloc = Find<decltype(strata_alloc)>(library, "strata_alloc");
  auto* const free = Find<decltype(strata_free)>(library, "strata_free");
  auto* const destroy =
      Find<decltype(strata_destroy)>(library, "strata_destroy");
  strata_facade* facade = nullptr;
  EXPECT(create("no_such_option=1", &facade) == STRATA_INVALID_ARGUMENT);
  EXPECT(create("strata_platform=sim,strata_stream_lock=biased", &facade) ==
         STRATA_OK);
  for (int i = 0; i < 200; ++i) {
    void* pointer = nullptr;
    EXPECT(alloc(facade, strata_place{STRATA_DEVICE, 0}, 1000, nullptr,
                 &pointer) == STRATA_OK);
    EXPECT(free(facade, pointer) == STRATA_OK);
  }
  EXPECT(destroy(facade) == STRATA_OK);
}

bool IsMapped(const std::string& name) {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    if (line.find(name) != std::string::npos) return true;
  }
  return false;
}

void UseModules(const std::string& folder) {
  for (int i = 0; i < kCopies; ++i) {
    const std::string name = "module" + std::to_string(i);
    auto* const use =
        Find<int()>(LoadCopy(STRATA_MODULE, folder, name), "UseStrata");
    EXPECT(use() == 0);
    std::thread([=] { EXPECT(use() == 0); }).join();
  }
}

// A thread uses a copy of the shared library, and ends after it is unloaded.
void UseAndUnload(const std::string& folder) {
  std::vector<void*> libraries;
  std::latch has_used(1);
  std::latch is_unloaded(1);
  for (int i = 0; i < kCopies; ++i) {
    libraries.push_back(
        LoadCopy(STRATA_LIBRARY, folder, "shared" + std::to_string(i)));
    UseLibrary(libraries.back());
    std::thread([&] { UseLibrary(libraries.back()); }).join();
  }
  std::thread outlives([&] {
    for (void* const library : libraries) UseLibrary(library);
    has_used.count_down();
    is_unloaded.wait();
  });
  has_used.wait();
  EXPECT(IsMapped(folder + "/shared0.so"));
  for (void* const library : libraries) EXPECT(dlclose(library) == 0);
  for (int i = 0; i < kCopies; ++i) {
    EXPECT(!IsMapped(folder + "/shared" + std::to_string(i) + ".so"));
  }
  is_unloaded.count_down();
  outlives.join();
}

}  // namespace

int main(int argc, char** argv) {
  EXPECT(argc == 2);
  const std::string folder = argv[1];
  std::filesystem::create_directories(folder);
  for (int i = 0; i < kCopies; ++i) {
    LoadCopy(STRATA_THREAD_LOCALS, folder, "other" + std::to_string(i));
  }
  UseModules(folder);
  UseAndUnload(folder);
  UseAndUnload(folder);
  return 0;
}
