#ifndef STRATA_PLATFORM_SIMDRIVER_STREAM_FUNCTIONS_H_
#define STRATA_PLATFORM_SIMDRIVER_STREAM_FUNCTIONS_H_

#include <cstddef>
#include <tuple>

#include "strata/base/require_cxx20.h"

namespace strata::simdriver {

// Which stream the null handle means: the legacy one, or the calling thread's.
enum class NullStream { kLegacy, kPerThread };

template <class Function>
struct FunctionType;
template <class Result, class... Types>
struct FunctionType<Result(Types...)> {
  using Parameters = std::tuple<Types...>;
  using WithNull = Result(NullStream, Types...);
};
template <class Function>
struct FunctionType<Function*> : FunctionType<Function> {};

// The type of `Function` with a NullStream before its parameters.
template <class Function>
using WithNull = typename FunctionType<Function>::WithNull;
template <class Function, std::size_t kIndex>
using Parameter =
    std::tuple_element_t<kIndex, typename FunctionType<Function>::Parameters>;

// The parameters a0, a1 … of a function of type `type`, each with a comma
// before it except the first, and the arguments, each with a comma before it.
#define STRATA_PARAMETERS_0(type)
#define STRATA_PARAMETERS_1(type) Parameter<type, 0> a0
#define STRATA_PARAMETERS_2(type) \
  STRATA_PARAMETERS_1(type), Parameter<type, 1> a1
#define STRATA_PARAMETERS_3(type) \
  STRATA_PARAMETERS_2(type), Parameter<type, 2> a2
#define STRATA_PARAMETERS_4(type) \
  STRATA_PARAMETERS_3(type), Parameter<type, 3> a3
#define STRATA_PARAMETERS_5(type) \
  STRATA_PARAMETERS_4(type), Parameter<type, 4> a4
#define STRATA_PARAMETERS_6(type) \
  STRATA_PARAMETERS_5(type), Parameter<type, 5> a5
#define STRATA_PARAMETERS_7(type) \
  STRATA_PARAMETERS_6(type), Parameter<type, 6> a6
#define STRATA_PARAMETERS_8(type) \
  STRATA_PARAMETERS_7(type), Parameter<type, 7> a7
#define STRATA_PARAMETERS_9(type) \
  STRATA_PARAMETERS_8(type), Parameter<type, 8> a8
#define STRATA_PARAMETERS_10(type) \
  STRATA_PARAMETERS_9(type), Parameter<type, 9> a9
#define STRATA_PARAMETERS_11(type) \
  STRATA_PARAMETERS_10(type), Parameter<type, 10> a10
#define STRATA_ARGUMENTS_0
#define STRATA_ARGUMENTS_1 , a0
#define STRATA_ARGUMENTS_2 STRATA_ARGUMENTS_1, a1
#define STRATA_ARGUMENTS_3 STRATA_ARGUMENTS_2, a2
#define STRATA_ARGUMENTS_4 STRATA_ARGUMENTS_3, a3
#define STRATA_ARGUMENTS_5 STRATA_ARGUMENTS_4, a4
#define STRATA_ARGUMENTS_6 STRATA_ARGUMENTS_5, a5
#define STRATA_ARGUMENTS_7 STRATA_ARGUMENTS_6, a6
#define STRATA_ARGUMENTS_8 STRATA_ARGUMENTS_7, a7
#define STRATA_ARGUMENTS_9 STRATA_ARGUMENTS_8, a8
#define STRATA_ARGUMENTS_10 STRATA_ARGUMENTS_9, a9
#define STRATA_ARGUMENTS_11 STRATA_ARGUMENTS_10, a10

// Defines the two exported functions of `function`, which have its parameters
// without the NullStream.
#define STRATA_DEFINE_EXPORTS(result, count, function)                \
  result function##Legacy(                                            \
      STRATA_PARAMETERS_##count(decltype(function##Legacy))) {        \
    return function(NullStream::kLegacy STRATA_ARGUMENTS_##count);    \
  }                                                                   \
  result function##PerThread(                                         \
      STRATA_PARAMETERS_##count(decltype(function##Legacy))) {        \
    return function(NullStream::kPerThread STRATA_ARGUMENTS_##count); \
  }

}  // namespace strata::simdriver

#endif  // STRATA_PLATFORM_SIMDRIVER_STREAM_FUNCTIONS_H_
