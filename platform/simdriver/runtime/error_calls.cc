// Results: the last one of a thread, names and sentences.

#include <algorithm>
#include <iterator>
#include <string>

#include "strata/platform/simdriver/runtime/calls.h"

namespace strata::simdriver::runtime {
namespace {

thread_local constinit cudaError_t t_last_error = cudaSuccess;

struct ErrorName {
  cudaError_t error;
  const char* name;
};

constexpr ErrorName kNames[] = {
#define STRATA_SIM_RUNTIME_ERROR(name) {name, #name},
#include "strata/platform/simdriver/runtime/errors.def"
#undef STRATA_SIM_RUNTIME_ERROR
};
constexpr std::size_t kCount = std::size(kNames);

const ErrorName* Find(cudaError_t error) {
  const auto* const found =
      std::find_if(std::begin(kNames), std::end(kNames),
                   [&](const ErrorName& row) { return row.error == error; });
  return found != std::end(kNames) ? found : nullptr;
}

// "cudaErrorInvalidDeviceFunction" as "invalid device function".
std::string SentenceOf(const std::string& name) {
  constexpr std::size_t kPrefix = sizeof("cudaError") - 1;
  std::string text;
  for (const char c : name.substr(std::min(kPrefix, name.size()))) {
    const bool upper = c >= 'A' && c <= 'Z';
    if (upper && !text.empty()) text += ' ';
    text += upper ? static_cast<char>(c - 'A' + 'a') : c;
  }
  return text;
}

// The text of an error that the driver does not know, by its index in kNames.
const char* OwnSentence(std::size_t index) {
  static const std::string* const sentences = [] {
    auto* made = new std::string[kCount];
    for (std::size_t i = 0; i < kCount; ++i) {
      made[i] = SentenceOf(kNames[i].name);
    }
    return made;
  }();
  return sentences[index].c_str();
}

}  // namespace

cudaError_t Note(cudaError_t error) {
  if (error != cudaSuccess) t_last_error = error;
  return error;
}

cudaError_t GetLastError() {
  const cudaError_t error = t_last_error;
  t_last_error = cudaSuccess;
  return error;
}

cudaError_t PeekAtLastError() { return t_last_error; }

const char* GetErrorName(cudaError_t error) {
  const ErrorName* const found = Find(error);
  return found != nullptr ? found->name : "unrecognized error code";
}

// Texts that programs look for are those of the driver.
const char* GetErrorString(cudaError_t error) {
  const ErrorName* const found = Find(error);
  if (found == nullptr) return "unrecognized error code";
  const char* text = nullptr;
  if (cuGetErrorString(static_cast<CUresult>(error), &text) == CUDA_SUCCESS) {
    return text;
  }
  return OwnSentence(static_cast<std::size_t>(found - kNames));
}

}  // namespace strata::simdriver::runtime
