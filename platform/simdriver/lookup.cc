// The lookup of functions by name and version, and the names of results.

#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "strata/platform/simdriver/counters.h"
#include "strata/platform/simdriver/process.h"

namespace strata::simdriver {

// The exported functions of the calls that depend on the null stream.
#define STRATA_SIM_ENTRY(symbol, version, exported, function)
#define STRATA_SIM_STREAM_ENTRY(symbol, version, exported, thread_version, \
                                suffix, count, function)                   \
  STRATA_DEFINE_EXPORTS(CUresult, count, function)
#include "strata/platform/simdriver/driver_entries.def"
#undef STRATA_SIM_STREAM_ENTRY
#undef STRATA_SIM_ENTRY

namespace {

// Indices of the names of unimplemented functions.
enum UnimplementedName {
#define STRATA_SIM_UNIMPLEMENTED_NAME(name) kIndexOf_##name,
#include "strata/platform/simdriver/unimplemented.def"
#undef STRATA_SIM_UNIMPLEMENTED_NAME
};

constexpr const char* kUnimplementedNames[] = {
#define STRATA_SIM_UNIMPLEMENTED_NAME(name) #name,
#include "strata/platform/simdriver/unimplemented.def"
#undef STRATA_SIM_UNIMPLEMENTED_NAME
};

// Takes any arguments, in the platform's C calling convention.
template <int kIndex>
CUresult CallUnimplemented() {
  return Unimplemented(kUnimplementedNames[kIndex]);
}

enum class Variant { kLegacy, kPerThread };

struct Row {
  std::string_view symbol;
  int version;
  Variant variant;
  void* function;
};

// Whether a function of `symbol` may have this exported name: the symbol, or
// the symbol and a version.
constexpr bool IsExportOf(std::string_view exported, std::string_view symbol) {
  if (exported.substr(0, symbol.size()) != symbol) return false;
  const std::string_view rest = exported.substr(symbol.size());
  return rest.empty() || (rest.size() == 3 && rest.substr(0, 2) == "_v");
}

// Each row of the table agrees with cuda.h: the header declares the exported
// name with the type of the row.
#define STRATA_SIM_ENTRY(symbol, version, exported, function)             \
  static_assert(                                                          \
      std::is_same_v<decltype(&::exported), PFN_##symbol##_v##version> && \
          IsExportOf(#exported, #symbol),                                 \
      #exported);
#define STRATA_SIM_STREAM_ENTRY(symbol, version, exported, thread_version,   \
                                suffix, count, function)                     \
  STRATA_SIM_ENTRY(symbol, version, exported, function)                      \
  static_assert(std::is_same_v<decltype(&::exported##_##suffix),             \
                               PFN_##symbol##_v##thread_version##_##suffix>, \
                #exported "_" #suffix);
#include "strata/platform/simdriver/driver_entries.def"
#undef STRATA_SIM_STREAM_ENTRY
#undef STRATA_SIM_ENTRY

template <class Function>
void* Address(Function* function) {
  return reinterpret_cast<void*>(function);
}

// Every function of cudaTypedefs.h, and four more: cuGraphInstantiate, which a
// macro of cuda.h makes another function since 12.0, and three functions of
// Strata.
const Row* Rows(std::size_t* count) {
  static const Row rows[] = {
#define STRATA_SIM_ENTRY(symbol, version, exported, function) \
  {#symbol, version, Variant::kLegacy, Address(&function)},
#define STRATA_SIM_STREAM_ENTRY(symbol, version, exported, thread_version, \
                                suffix, count, function)                   \
  {#symbol, version, Variant::kLegacy, Address(&function##Legacy)},        \
      {#symbol, thread_version, Variant::kPerThread,                       \
       Address(&function##PerThread)},
#include "strata/platform/simdriver/driver_entries.def"
#undef STRATA_SIM_STREAM_ENTRY
#undef STRATA_SIM_ENTRY
#define STRATA_SIM_UNIMPLEMENTED(symbol, version, variant) \
  {#symbol, version, Variant::variant,                     \
   Address(&CallUnimplemented<kIndexOf_##symbol>)},
#include "strata/platform/simdriver/unimplemented.def"
#undef STRATA_SIM_UNIMPLEMENTED
      {"cuGraphInstantiate", 12000, Variant::kLegacy,
       Address(&GraphInstantiateWithFlags)},
      {kSimDriverInfoName, 0, Variant::kLegacy, Address(&DescribeSimDriver)},
      {kSimDriverReportName, 0, Variant::kLegacy, Address(&WriteReport)},
      {kSimDriverStateName, 0, Variant::kLegacy,
       Address(&DescribeSimDriverState)},
  };
  *count = std::size(rows);
  return rows;
}

// The row for a request of `symbol` at `version`; null if there is none. Sets
// `known` to whether the table has the symbol at any version.
const Row* FindRow(std::string_view symbol, int version, Variant variant,
                   bool* known) {
  std::size_t count = 0;
  const Row* const rows = Rows(&count);
  const Row* best = nullptr;
  for (const Row* row = rows; row != rows + count; ++row) {
    if (row->symbol != symbol || row->variant != variant) continue;
    *known = true;
    if (row->version > version) continue;
    if (best == nullptr || row->version > best->version) best = row;
  }
  return best;
}

CUresult Find(const char* symbol, void** function, int version,
              cuuint64_t flags, CUdriverProcAddressQueryResult* status) {
  constexpr cuuint64_t kAllFlags =
      CU_GET_PROC_ADDRESS_LEGACY_STREAM |
      CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
  if (IsForkedChild()) return CUDA_ERROR_NOT_INITIALIZED;
  if (symbol == nullptr || function == nullptr || version > CUDA_VERSION ||
      (flags & ~kAllFlags) != 0 || flags == kAllFlags) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  bool known = false;
  const Row* row = nullptr;
  if (flags == CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM) {
    row = FindRow(symbol, version, Variant::kPerThread, &known);
  }
  // A function without a stream has the legacy variant alone.
  if (!known) row = FindRow(symbol, version, Variant::kLegacy, &known);
  *function = row != nullptr ? row->function : nullptr;
  if (status != nullptr) {
    *status = row != nullptr ? CU_GET_PROC_ADDRESS_SUCCESS
              : known        ? CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT
                             : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    return CUDA_SUCCESS;
  }
  return row != nullptr ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

struct ResultName {
  CUresult result;
  const char* name;
};

constexpr ResultName kResultNames[] = {
#define STRATA_SIM_RESULT(name) {name, #name},
#include "strata/platform/simdriver/results.def"
#undef STRATA_SIM_RESULT
};
constexpr std::size_t kResultCount = std::size(kResultNames);

// The index of `result`, or kResultCount.
std::size_t IndexOf(CUresult result) {
  const auto* const found =
      std::find_if(std::begin(kResultNames), std::end(kResultNames),
                   [&](const ResultName& row) { return row.result == result; });
  return static_cast<std::size_t>(found - std::begin(kResultNames));
}

constexpr std::pair<CUresult, const char*> kSentences[] = {
#define STRATA_SIM_SENTENCE(result, text) {result, text},
#include "strata/platform/simdriver/sentences.def"
#undef STRATA_SIM_SENTENCE
};

// "CUDA_ERROR_DEINITIALIZED" as "deinitialized".
std::string SentenceOf(const ResultName& row) {
  for (const auto& [result, text] : kSentences) {
    if (result == row.result) return text;
  }
  std::string_view name = row.name;
  constexpr std::string_view kError = "CUDA_ERROR_";
  constexpr std::string_view kPlain = "CUDA_";
  name.remove_prefix(name.substr(0, kError.size()) == kError ? kError.size()
                                                             : kPlain.size());
  std::string text(name);
  for (char& c : text) {
    c = c == '_' ? ' ' : static_cast<char>(c >= 'A' && c <= 'Z' ? c + 32 : c);
  }
  return text;
}

const std::array<std::string, kResultCount>& Sentences() {
  static const auto* const sentences = [] {
    auto* made = new std::array<std::string, kResultCount>;
    for (std::size_t i = 0; i < kResultCount; ++i) {
      (*made)[i] = SentenceOf(kResultNames[i]);
    }
    return made;
  }();
  return *sentences;
}

}  // namespace

CUresult GetProcAddress(const char* symbol, void** function, int version,
                        cuuint64_t flags) {
  return Find(symbol, function, version, flags, nullptr);
}

CUresult GetProcAddressAndStatus(const char* symbol, void** function,
                                 int version, cuuint64_t flags,
                                 CUdriverProcAddressQueryResult* status) {
  return Find(symbol, function, version, flags, status);
}

CUresult GetErrorName(CUresult result, const char** name) {
  if (name == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const std::size_t index = IndexOf(result);
  *name = index < kResultCount ? kResultNames[index].name : nullptr;
  return index < kResultCount ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult GetErrorString(CUresult result, const char** text) {
  if (text == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const std::size_t index = IndexOf(result);
  *text = index < kResultCount ? Sentences()[index].c_str() : nullptr;
  return index < kResultCount ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

// The exported names of functions that the stand-in lacks.
#define STRATA_SIM_UNIMPLEMENTED_EXPORT(name)                  \
  CUresult Exported_##name() __asm__(#name) STRATA_SIM_EXPORT; \
  CUresult Exported_##name() { return Unimplemented(#name); }
#include "strata/platform/simdriver/unimplemented.def"
#undef STRATA_SIM_UNIMPLEMENTED_EXPORT

}  // namespace strata::simdriver
