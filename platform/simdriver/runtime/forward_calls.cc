// The functions that call a function of the driver with the same meaning, as
// runtime_entries.def lists them. Handles, numbers and structures of the two
// are the same; ToDriver compiles for no other types.

#include <cstddef>
#include <tuple>
#include <type_traits>

#include "strata/platform/simdriver/runtime/calls.h"

namespace strata::simdriver::runtime {
namespace {

template <class Function>
struct ParametersOf;
template <class... Types>
struct ParametersOf<cudaError_t(Types...)> {
  using Tuple = std::tuple<Types...>;
};
template <class Function, std::size_t kIndex>
using Parameter =
    std::tuple_element_t<kIndex, typename ParametersOf<Function>::Tuple>;

// The structures of the two that have one layout.
template <class Runtime, class Driver>
inline constexpr bool kIsSameStruct = false;
template <>
inline constexpr bool kIsSameStruct<cudaMemAccessDesc, CUmemAccessDesc> = true;
static_assert(sizeof(cudaMemAccessDesc) == sizeof(CUmemAccessDesc));
static_assert(offsetof(cudaMemAccessDesc, flags) ==
              offsetof(CUmemAccessDesc, flags));
template <>
inline constexpr bool kIsSameStruct<cudaGraphEdgeData, CUgraphEdgeData> = true;
static_assert(sizeof(cudaGraphEdgeData) == sizeof(CUgraphEdgeData));
static_assert(offsetof(cudaGraphEdgeData, type) ==
              offsetof(CUgraphEdgeData, type));

template <class Type>
inline constexpr bool kIsNumber =
    std::is_integral_v<Type> || std::is_enum_v<Type>;

// Whether a value of the runtime and one of the driver have the same bits.
template <class Runtime, class Driver>
inline constexpr bool kIsSame = std::is_same_v<Runtime, Driver> ||
                                kIsSameStruct<Runtime, Driver> ||
                                (kIsNumber<Runtime> && kIsNumber<Driver> &&
                                 sizeof(Runtime) == sizeof(Driver));

// `value` with the type that the driver gives it.
template <NullStream kNull, class To, class From>
To ToDriver(From value) {
  if constexpr (std::is_same_v<From, cudaStream_t>) {
    return StreamOf(kNull, value);
  } else if constexpr (std::is_same_v<From, To>) {
    return value;
  } else if constexpr (std::is_same_v<From, void*> &&
                       std::is_same_v<To, CUdeviceptr>) {
    return ToPtr(value);
  } else if constexpr (std::is_pointer_v<From> && std::is_pointer_v<To>) {
    using Runtime = std::remove_pointer_t<From>;
    using Driver = std::remove_pointer_t<To>;
    static_assert(std::is_const_v<Driver> || !std::is_const_v<Runtime>);
    static_assert(
        kIsSame<std::remove_const_t<Runtime>, std::remove_const_t<Driver>>);
    return reinterpret_cast<To>(value);
  } else {
    static_assert(kIsSame<From, To> ||
                  (std::is_unsigned_v<From> && std::is_unsigned_v<To> &&
                   sizeof(From) < sizeof(To)));
    return static_cast<To>(value);
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
