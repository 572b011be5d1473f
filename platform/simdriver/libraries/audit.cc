// A library for LD_AUDIT that puts the stand-ins in the place of NVIDIA's
// libraries, wherever a program looks for them.
//
// Model: STRATA_SIM_LIBRARIES is a list of folders with ':' between them. When
//   the loader looks for a library by name or by path, and a folder has a file
//   of that name, the loader uses that file. The process ends with a message if
//   a library of NVIDIA that needs a GPU is loaded nevertheless, or if the list
//   is too long.
//   This library uses only the C library, because the loader runs it in a
//   namespace of its own.

#include <link.h>
#include <unistd.h>

#include <cstddef>
#include <cstdlib>
#include <cstring>

namespace {

constexpr std::size_t kMostFolders = 8;
constexpr std::size_t kMostPath = 4096;

// The libraries that call a driver, up to ".so". Other libraries of NVIDIA,
// such as NVRTC and nvJitLink, are compilers and need no GPU.
constexpr const char* kRefused[] = {"libcuda",
                                    "libcudart",
                                    "libcublas",
                                    "libcublasLt",
                                    "libcudnn",
                                    "libcufft",
                                    "libcufftw",
                                    "libcurand",
                                    "libcusolver",
                                    "libcusolverMg",
                                    "libcusparse",
                                    "libcusparseLt",
                                    "libnccl",
                                    "libcupti",
                                    "libcufile",
                                    "libcufile_rdma",
                                    "libnvshmem",
                                    "libnvidia-ml",
                                    "libnvshmem_host",
                                    "libcudnn_ops",
                                    "libcudnn_cnn",
                                    "libcudnn_adv",
                                    "libcudnn_graph",
                                    "libcudnn_heuristic",
                                    "libcudnn_engines_precompiled",
                                    "libcudnn_engines_runtime_compiled",
                                    "libcudnn_ext",
                                    "libcutensor"};

char folders[kMostPath];
const char* folder_list[kMostFolders];
std::size_t folder_count = 0;
char found_path[kMostPath];  // guarded by the loader's lock

const char* FileName(const char* path) {
  const char* slash = std::strrchr(path, '/');
  return slash == nullptr ? path : slash + 1;
}

bool IsStandIn(const char* path) {
  for (std::size_t i = 0; i < folder_count; ++i) {
    const std::size_t length = std::strlen(folder_list[i]);
    if (std::strncmp(path, folder_list[i], length) == 0 &&
        path[length] == '/') {
      return true;
    }
  }
  return false;
}

// The path of the stand-in with this file name, or null.
const char* FindStandIn(const char* name) {
  for (std::size_t i = 0; i < folder_count; ++i) {
    const std::size_t folder = std::strlen(folder_list[i]);
    const std::size_t length = std::strlen(name);
    if (folder + length + 2 > sizeof(found_path)) continue;
    std::memcpy(found_path, folder_list[i], folder);
    found_path[folder] = '/';
    std::memcpy(found_path + folder + 1, name, length + 1);
    if (access(found_path, R_OK) == 0) return found_path;
  }
  return nullptr;
}

bool IsRefused(const char* name) {
  const char* end = std::strstr(name, ".so");
  if (end == nullptr) return false;
  const auto length = static_cast<std::size_t>(end - name);
  for (const char* refused : kRefused) {
    if (std::strlen(refused) == length &&
        std::strncmp(name, refused, length) == 0) {
      return true;
    }
  }
  return false;
}

void Say(const char* text) {
  const ssize_t written = write(STDERR_FILENO, text, std::strlen(text));
  static_cast<void>(written);
}

[[noreturn]] void Refuse(const char* text) {
  Say(text);
  _exit(127);
}

}  // namespace

extern "C" {

unsigned la_version(unsigned version) {
  const char* list = std::getenv("STRATA_SIM_LIBRARIES");
  if (list == nullptr) return 0;
  if (std::strlen(list) >= sizeof(folders)) {
    Refuse("strata: STRATA_SIM_LIBRARIES has 4096 bytes or more\n");
  }
  std::memcpy(folders, list, std::strlen(list) + 1);
  char* rest = folders;
  while (rest != nullptr) {
    char* end = std::strchr(rest, ':');
    if (end != nullptr) *end = '\0';
    if (*rest != '\0') {
      if (folder_count == kMostFolders) {
        Refuse("strata: STRATA_SIM_LIBRARIES names more than 8 folders\n");
      }
      folder_list[folder_count++] = rest;
    }
    rest = end == nullptr ? nullptr : end + 1;
  }
  return version < LAV_CURRENT ? version : LAV_CURRENT;
}

char* la_objsearch(const char* name, uintptr_t* /*cookie*/, unsigned flag) {
  auto* same = const_cast<char*>(name);
  if (flag != LA_SER_ORIG || IsStandIn(name)) return same;
  const char* file = FileName(name);
  if (*file == '\0') return same;  // the name of a folder
  const char* found = FindStandIn(file);
  return found == nullptr ? same : const_cast<char*>(found);
}

unsigned la_objopen(struct link_map* map, Lmid_t /*space*/,
                    uintptr_t* /*cookie*/) {
  const char* path = map->l_name;
  if (path == nullptr || IsStandIn(path) || !IsRefused(FileName(path))) {
    return 0;
  }
  Say("strata: the driver is simulated, but the program loaded NVIDIA's ");
  Say(path);
  Refuse(
      ", which needs a GPU. Run it without sim_run, or without this library. "
      "For a console script, name the folder of its libraries: "
      "sim_run --libraries FOLDER\n");
}

}  // extern "C"
