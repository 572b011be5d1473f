// The functions for PyTorch, on top of the C ABI.

#include <cstdlib>
#include <new>
#include <stdexcept>
#include <string>

#include "strata/base/log.h"
#include "strata/bindings/c/c_api_call.h"
#include "strata/bindings/torch/torch.h"

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

// Logs the error of `call`, or of the creation of the facade: PyTorch calls
// from destructors, which must not throw.
template <class Call>
void LogErrors(const char* function, Call call) noexcept {
  strata_status status = STRATA_OK;
  const strata_status made =
      GuardCall(function, [&] { status = call(TorchFacade()); });
  STRATA_LOG_IF(Error, made != STRATA_OK || status != STRATA_OK)
      << strata_last_error();
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
