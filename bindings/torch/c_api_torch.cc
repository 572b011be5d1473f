// The functions for PyTorch, on top of the C ABI.

#include <cstdint>
#include <cstdlib>
#include <map>
#include <mutex>
#include <new>
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

// Carries the text of an exception; the C ABI loses its type.
class TorchOutOfMemory final : public std::bad_alloc {
 public:
  explicit TorchOutOfMemory(const char* text) : text_(text) {}
  const char* what() const noexcept override { return text_.c_str(); }

 private:
  std::string text_;
};

strata_facade& TorchFacade() {
  static auto* const facade = [] {
    const char* options = std::getenv("STRATA_OPTIONS");
    return new strata_facade(Options::Parse(options != nullptr ? options : ""));
  }();
  return *facade;
}

// Null for lack of memory if `may_fail`.
void* TorchAlloc(std::size_t bytes, int device, void* stream, bool may_fail) {
  void* pointer = nullptr;
  const strata_status status = strata_alloc(
      &TorchFacade(), {STRATA_DEVICE, device}, bytes, stream, &pointer);
  if (status == STRATA_OK) return pointer;
  if (status != STRATA_OUT_OF_MEMORY) {
    throw std::runtime_error(strata_last_error());
  }
  if (!may_fail) throw TorchOutOfMemory(strata_last_error());
  return nullptr;
}

// Returns the status of `call(strata_facade&)`, or of the creation of the
// facade.
template <class Call>
strata_status WithFacade(const char* function, Call call) noexcept {
  strata_status status = STRATA_OK;
  const strata_status made =
      GuardCall(function, [&] { status = call(TorchFacade()); });
  return made != STRATA_OK ? made : status;
}

// Like WithFacade, but logs an error: PyTorch calls from destructors, which
// must not throw.
template <class Call>
void LogErrors(const char* function, Call call) noexcept {
  const strata_status status = WithFacade(function, call);
  STRATA_LOG_IF(Error, status != STRATA_OK) << strata_last_error();
}

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

}  // namespace
}  // namespace strata

void* strata_torch_malloc(std::size_t bytes, int device, void* stream) {
  return strata::TorchAlloc(bytes, device, stream, /*may_fail=*/false);
}

void* strata_torch_pool_malloc(std::size_t bytes, int device, void* stream) {
  return strata::TorchAlloc(bytes, device, stream, /*may_fail=*/true);
}

void strata_torch_free(void* pointer, std::size_t /*bytes*/, int /*device*/,
                       void* /*stream*/) {
  if (pointer == nullptr) return;
  strata::LogErrors("strata_torch_free", [&](strata_facade& facade) {
    return strata_free(&facade, pointer);
  });
}

void strata_torch_record_stream(void* pointer, void* stream) {
  if (pointer == nullptr) return;
  strata::LogErrors("strata_torch_record_stream", [&](strata_facade& facade) {
    return strata_record_stream(&facade, pointer, stream);
  });
}

void strata_torch_empty_cache() {
  strata::LogErrors("strata_torch_empty_cache", [](strata_facade& facade) {
    facade.facade.EmptyCache();
    return STRATA_OK;
  });
}

strata_facade* strata_torch_facade() {
  strata_facade* facade = nullptr;
  strata::GuardCall("strata_torch_facade",
                    [&] { facade = &strata::TorchFacade(); });
  return facade;
}

void strata_torch_begin_pool(int /*device*/, strata_torch_pool pool,
                             void* /*filter*/) {
  const strata_status status =
      strata::WithFacade("strata_torch_begin_pool", [&](strata_facade& facade) {
        strata::Pools().Begin(facade.facade, pool);
        return STRATA_OK;
      });
  if (status != STRATA_OK) throw std::logic_error(strata_last_error());
}

void strata_torch_end_pool(int /*device*/, strata_torch_pool pool) {
  strata::LogErrors("strata_torch_end_pool", [&](strata_facade& facade) {
    strata::Pools().End(facade.facade, pool);
    return STRATA_OK;
  });
}

void strata_torch_release_pool(int /*device*/, strata_torch_pool pool) {
  strata::LogErrors("strata_torch_release_pool", [&](strata_facade& facade) {
    strata::Pools().Release(facade.facade, pool);
    return STRATA_OK;
  });
}
