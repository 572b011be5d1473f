// The functions for PyTorch: captures of CUDA graphs.

#include <cstdint>
#include <map>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "strata/allocation/error.h"
#include "strata/base/log.h"
#include "strata/bindings/c/c_api_call.h"
#include "strata/bindings/torch/torch.h"
#include "strata/facade/graphs/graph_pool_id.h"
#include "strata/platform/platform.h"

namespace strata {
namespace {

// PyTorch's pools, as graph pools of the facade.
//
// Threads: any thread. The lock is held during device calls: no capture may
//   begin while a release waits for the devices, as the wait would break it.
class TorchPools {
 public:
  void Begin(AllocatorFacade& facade, const strata_torch_pool& pool) {
    const std::lock_guard<std::mutex> guard(mutex_);
    if (capturing_ != 0) {
      if (thread_ != std::this_thread::get_id()) {
        throw std::logic_error(
            "another thread has announced a capture of PyTorch: captures come "
            "one after another");
      }
      // PyTorch 2.11 does not announce the end of a capture that failed. A
      // thread that announces the next one has ended it.
      facade.CaptureEnded(std::exchange(capturing_, 0));
    }
    const auto found = pools_.try_emplace(KeyOf(pool)).first;
    Users& users = found->second;
    try {
      users.id = facade.PrepareMemoryPoolForCUDAGraph(users.id);
    } catch (...) {
      if (users.count == 0) pools_.erase(found);
      throw;
    }
    ++users.count;
    capturing_ = users.id;
    thread_ = std::this_thread::get_id();
  }

  void End(AllocatorFacade& facade, const strata_torch_pool& pool) {
    const std::lock_guard<std::mutex> guard(mutex_);
    const GraphPoolId id = Find(pool)->second.id;
    facade.CaptureEnded(id);
    if (id != capturing_) return;
    capturing_ = 0;
    RemoveReleased(facade);
  }

  void Release(AllocatorFacade& facade, const strata_torch_pool& pool) {
    const std::lock_guard<std::mutex> guard(mutex_);
    const auto found = Find(pool);
    released_.push_back(found->second.id);
    if (--found->second.count == 0) pools_.erase(found);
    if (capturing_ == 0) RemoveReleased(facade);
  }

 private:
  using Key = std::pair<std::uint64_t, std::uint64_t>;
  struct Users {
    GraphPoolId id = 0;  // 0: none yet
    int count = 0;       // calls of Begin without one of Release
  };

  static Key KeyOf(const strata_torch_pool& pool) {
    return {pool.first, pool.second};
  }

  std::map<Key, Users>::iterator Find(const strata_torch_pool& pool) {
    const auto found = pools_.find(KeyOf(pool));
    if (found == pools_.end()) {
      throw std::invalid_argument("no capture used pool " +
                                  std::to_string(pool.first) + ", " +
                                  std::to_string(pool.second));
    }
    return found;
  }

  // The last launches of a graph may still use its memory.
  void RemoveReleased(AllocatorFacade& facade) {
    if (released_.empty()) return;
    for (int i = 0; i < facade.platform().device_count(); ++i) {
      const Status status = facade.platform().device(i).Synchronize();
      if (status != Status::kSuccess) {
        throw DeviceError("cannot wait for the graphs of a pool", status);
      }
    }
    while (!released_.empty()) {
      const GraphPoolId id = released_.back();
      released_.pop_back();
      facade.RemoveMemoryPoolOfCUDAGraph(id);
    }
  }

  std::mutex mutex_;
  std::map<Key, Users> pools_;         // guarded by mutex_
  std::vector<GraphPoolId> released_;  // by PyTorch alone; guarded by mutex_
  // The pool of the announced capture; 0: none. Guarded by mutex_.
  GraphPoolId capturing_ = 0;
  std::thread::id thread_;  // that announced it; guarded by mutex_
};

TorchPools& Pools() {
  static auto* const pools = new TorchPools;
  return *pools;
}

// Runs `call` with the facade; returns whether it succeeded.
template <class Call>
bool WithFacade(const char* function, Call call) noexcept {
  strata_facade* const facade = strata_torch_facade();
  if (facade == nullptr) return false;
  return GuardCall(function, [&] { call(facade->facade); }) == STRATA_OK;
}

}  // namespace
}  // namespace strata

void strata_torch_begin_pool(int /*device*/, strata_torch_pool pool,
                             void* /*filter*/) {
  if (!strata::WithFacade("strata_torch_begin_pool",
                          [&](strata::AllocatorFacade& facade) {
                            strata::Pools().Begin(facade, pool);
                          })) {
    throw std::logic_error(strata_last_error());
  }
}

void strata_torch_end_pool(int /*device*/, strata_torch_pool pool) {
  const bool is_done = strata::WithFacade("strata_torch_end_pool",
                                          [&](strata::AllocatorFacade& facade) {
                                            strata::Pools().End(facade, pool);
                                          });
  STRATA_LOG_IF(Error, !is_done) << strata_last_error();
}

void strata_torch_release_pool(int /*device*/, strata_torch_pool pool) {
  const bool is_done = strata::WithFacade(
      "strata_torch_release_pool", [&](strata::AllocatorFacade& facade) {
        strata::Pools().Release(facade, pool);
      });
  STRATA_LOG_IF(Error, !is_done) << strata_last_error();
}
