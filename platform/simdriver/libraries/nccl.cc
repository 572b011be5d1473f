// The functions of NCCL that read a communicator. A rank has no peers: it knows
// its number, its device and the number of ranks, and never waits.

#include <dlfcn.h>

#include <atomic>
#include <cstdlib>
#include <cstring>

#include "strata/platform/simdriver/libraries/split_color.h"

namespace {

constexpr int kSuccess = 0;
constexpr int kSystemError = 2;
constexpr int kInvalidArgument = 4;
constexpr int kNoColor = -1;

struct Communicator {
  int ranks;
  int rank;
  int device;
};

// An identifier, which NCCL passes by value.
struct UniqueId {
  char bytes[128];
};

// The device of the current context, or 0. A driver that is not loaded has no
// context.
int CurrentDevice() {
  using Function = int (*)(int*);
  void* driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
  if (driver == nullptr) return 0;
  void* found = dlsym(driver, "cuCtxGetDevice");
  int device = 0;
  if (found == nullptr || reinterpret_cast<Function>(found)(&device) != 0) {
    device = 0;
  }
  dlclose(driver);
  return device;
}

int Make(Communicator** out, int ranks, int rank, int device) {
  if (out == nullptr || ranks < 1 || rank < 0 || rank >= ranks) {
    return kInvalidArgument;
  }
  auto* made = static_cast<Communicator*>(std::calloc(1, sizeof(Communicator)));
  if (made == nullptr) return kSystemError;
  *made = {ranks, rank, device};
  *out = made;
  return kSuccess;
}

// The number in STRATA_SIM_NCCL_PARTS for this split of the process: "2,4" for
// parts of 2 and of 4 ranks. 0 if there is none.
int AnnouncedSize() {
  static std::atomic<int> splits{0};
  const char* at = std::getenv("STRATA_SIM_NCCL_PARTS");
  for (int split = splits.fetch_add(1); at != nullptr && split > 0; --split) {
    at = std::strchr(at, ',');
    if (at != nullptr) ++at;
  }
  return at != nullptr ? std::atoi(at) : 0;
}

int Put(int* out, int value) {
  if (out == nullptr) return kInvalidArgument;
  *out = value;
  return kSuccess;
}

}  // namespace

extern "C" {

int ncclGetUniqueId(UniqueId* id) {
  if (id == nullptr) return kInvalidArgument;
  std::memset(id->bytes, 1, sizeof(id->bytes));
  return kSuccess;
}

int ncclCommGetUniqueId(Communicator* /*comm*/, UniqueId* id) {
  return ncclGetUniqueId(id);
}

int ncclCommInitRank(Communicator** comm, int ranks, UniqueId /*id*/,
                     int rank) {
  return Make(comm, ranks, rank, CurrentDevice());
}

int ncclCommInitRankConfig(Communicator** comm, int ranks, UniqueId /*id*/,
                           int rank, void* /*config*/) {
  return Make(comm, ranks, rank, CurrentDevice());
}

int ncclCommInitRankScalable(Communicator** comm, int ranks, int rank,
                             int /*ids*/, UniqueId* /*id*/, void* /*config*/) {
  return Make(comm, ranks, rank, CurrentDevice());
}

int ncclCommInitAll(Communicator** comms, int count, const int* devices) {
  if (comms == nullptr) return kInvalidArgument;
  for (int i = 0; i < count; ++i) {
    const int device = devices == nullptr ? i : devices[i];
    const int result = Make(&comms[i], count, i, device);
    if (result == kSuccess) continue;
    while (i-- > 0) {
      std::free(comms[i]);
      comms[i] = nullptr;
    }
    return result;
  }
  return kSuccess;
}

// The colors of the other ranks are unknown. The color of PyTorch's new_group
// tells the ranks of the part. Otherwise the part has the announced size, or is
// as large as the whole.
int ncclCommSplit(Communicator* comm, int color, int key, Communicator** out,
                  void* /*config*/) {
  if (comm == nullptr || out == nullptr) return kInvalidArgument;
  *out = nullptr;
  if (color == kNoColor) return kSuccess;
  int count =
      strata::simdriver::SizeOfPart(comm->ranks, comm->rank, key, color);
  if (count == 0) count = AnnouncedSize();
  return count == 0 ? Make(out, comm->ranks, comm->rank, comm->device)
                    : Make(out, count, key, comm->device);
}

int ncclCommShrink(Communicator* comm, int* excluded, int count,
                   Communicator** out, void* /*config*/, int /*flags*/) {
  if (comm == nullptr || count < 0 || (count > 0 && excluded == nullptr)) {
    return kInvalidArgument;
  }
  int below = 0;
  for (int i = 0; i < count; ++i) below += excluded[i] < comm->rank ? 1 : 0;
  return Make(out, comm->ranks - count, comm->rank - below, comm->device);
}

int ncclCommCount(const Communicator* comm, int* count) {
  return comm == nullptr ? kInvalidArgument : Put(count, comm->ranks);
}

int ncclCommUserRank(const Communicator* comm, int* rank) {
  return comm == nullptr ? kInvalidArgument : Put(rank, comm->rank);
}

int ncclCommCuDevice(const Communicator* comm, int* device) {
  return comm == nullptr ? kInvalidArgument : Put(device, comm->device);
}

int ncclCommGetAsyncError(Communicator* /*comm*/, int* error) {
  return Put(error, kSuccess);
}

int ncclCommDestroy(Communicator* comm) {
  std::free(comm);
  return kSuccess;
}

int ncclCommAbort(Communicator* comm) { return ncclCommDestroy(comm); }

}  // extern "C"
