// The functions that call a function of the driver with the same meaning, as
// runtime_entries.def lists them. Handles, numbers and structures of the two
// are the same.

#include <cstddef>
#include <tuple>
#include <type_traits>

#include "strata/platform/simdriver/runtime/calls.h"

namespace strata::simdriver::runtime {
namespace {

static_assert(sizeof(cudaMemAccessDesc) == sizeof(CUmemAccessDesc));
static_assert(sizeof(cudaGraphEdgeData) == sizeof(CUgraphEdgeData));
static_assert(offsetof(cudaGraphEdgeData, type) ==
              offsetof(CUgraphEdgeData, type));

template <class Function>
struct ParametersOf;
template <class... Types>
struct ParametersOf<cudaError_t(Types...)> {
  using Tuple = std::tuple<Types...>;
};
template <class Function, std::size_t kIndex>
using Parameter =
    std::tuple_element_t<kIndex, typename ParametersOf<Function>::Tuple>;

// `value` with the type that the driver gives it.
template <NullStream kNull, class To, class From>
To ToDriver(From value) {
  if constexpr (std::is_same_v<From, cudaStream_t>) {
    return StreamOf(kNull, value);
  } else if constexpr (std::is_convertible_v<From, To>) {
    return value;
  } else if constexpr (std::is_enum_v<From>) {
    return static_cast<To>(value);
  } else {
    return reinterpret_cast<To>(value);
  }
}

template <NullStream kNull, class... Types, class... Arguments>
CUresult Forward(CUresult (*driver)(Types...), Arguments... arguments) {
  return driver(ToDriver<kNull, Types>(arguments)...);
}

}  // namespace

#define STRATA_PARAMETER(exported, index) \
  Parameter<decltype(::exported), index> a##index
#define STRATA_PARAMETERS_0(exported)
#define STRATA_PARAMETERS_1(exported) STRATA_PARAMETER(exported, 0)
#define STRATA_PARAMETERS_2(exported) \
  STRATA_PARAMETERS_1(exported), STRATA_PARAMETER(exported, 1)
#define STRATA_PARAMETERS_3(exported) \
  STRATA_PARAMETERS_2(exported), STRATA_PARAMETER(exported, 2)
#define STRATA_PARAMETERS_4(exported) \
  STRATA_PARAMETERS_3(exported), STRATA_PARAMETER(exported, 3)
#define STRATA_PARAMETERS_5(exported) \
  STRATA_PARAMETERS_4(exported), STRATA_PARAMETER(exported, 4)
#define STRATA_PARAMETERS_6(exported) \
  STRATA_PARAMETERS_5(exported), STRATA_PARAMETER(exported, 5)
#define STRATA_ARGUMENTS_0
#define STRATA_ARGUMENTS_1 , a0
#define STRATA_ARGUMENTS_2 STRATA_ARGUMENTS_1, a1
#define STRATA_ARGUMENTS_3 STRATA_ARGUMENTS_2, a2
#define STRATA_ARGUMENTS_4 STRATA_ARGUMENTS_3, a3
#define STRATA_ARGUMENTS_5 STRATA_ARGUMENTS_4, a4
#define STRATA_ARGUMENTS_6 STRATA_ARGUMENTS_5, a5

#define STRATA_FORWARD(function, exported, count, with, driver, null)     \
  cudaError_t function(STRATA_PARAMETERS_##count(exported)) {             \
    return with([&] {                                                     \
      return Forward<NullStream::null>(&driver STRATA_ARGUMENTS_##count); \
    });                                                                   \
  }
#define STRATA_SIM_RUNTIME_ENTRY(exported, function)
#define STRATA_SIM_RUNTIME_STREAM_ENTRY(exported, suffix, function)
#define STRATA_SIM_RUNTIME_FORWARD(exported, count, with, driver) \
  STRATA_FORWARD(exported##Forward, exported, count, with, driver, kLegacy)
#define STRATA_SIM_RUNTIME_STREAM_FORWARD(exported, suffix, count, with,    \
                                          driver)                           \
  STRATA_SIM_RUNTIME_FORWARD(exported, count, with, driver)                 \
  STRATA_FORWARD(exported##ForwardPerThread, exported, count, with, driver, \
                 kPerThread)
#include "strata/platform/simdriver/runtime/runtime_entries.def"

}  // namespace strata::simdriver::runtime
