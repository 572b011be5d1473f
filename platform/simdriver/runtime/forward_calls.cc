// The exported functions of the calls that depend on the null stream, and the
// functions that call a function of the driver with the same meaning, as
// runtime_entries.def lists them. Handles, numbers and structures of the two
// are the same; ToDriver compiles for no other types.

#include <cstddef>
#include <type_traits>

#include "strata/platform/simdriver/runtime/calls.h"

namespace strata::simdriver::runtime {
namespace {

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
template <class To, class From>
To ToDriver([[maybe_unused]] NullStream null, From value) {
  if constexpr (std::is_same_v<From, cudaStream_t>) {
    return StreamOf(null, value);
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

template <class... Types, class... Arguments>
CUresult Forward([[maybe_unused]] NullStream null, CUresult (*driver)(Types...),
                 Arguments... arguments) {
  return driver(ToDriver<Types>(null, arguments)...);
}

}  // namespace

#define STRATA_SIM_RUNTIME_ENTRY(exported, function)
#define STRATA_SIM_RUNTIME_STREAM_ENTRY(exported, suffix, count, function) \
  STRATA_DEFINE_EXPORTS(cudaError_t, count, function)
#define STRATA_SIM_RUNTIME_FORWARD(exported, count, with, driver)            \
  cudaError_t exported##Forward(                                             \
      STRATA_PARAMETERS_##count(decltype(exported##Forward))) {              \
    return with([&] {                                                        \
      return Forward(NullStream::kLegacy, &driver STRATA_ARGUMENTS_##count); \
    });                                                                      \
  }
#define STRATA_SIM_RUNTIME_STREAM_FORWARD(exported, suffix, count, with,  \
                                          driver)                         \
  cudaError_t exported##Forward(                                          \
      NullStream null,                                                    \
      STRATA_PARAMETERS_##count(decltype(exported##ForwardLegacy))) {     \
    return with(                                                          \
        [&] { return Forward(null, &driver STRATA_ARGUMENTS_##count); }); \
  }                                                                       \
  STRATA_DEFINE_EXPORTS(cudaError_t, count, exported##Forward)
#include "strata/platform/simdriver/runtime/runtime_entries.def"

}  // namespace strata::simdriver::runtime
