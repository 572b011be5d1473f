#ifndef STRATA_PLATFORM_CALLS_CALL_FRAME_H_
#define STRATA_PLATFORM_CALLS_CALL_FRAME_H_

#include <cstdint>
#include <type_traits>

#include "strata/platform/calls/call_record.h"
#include "strata/platform/stream.h"

namespace strata {

// A device defines its entry points from the rows of device_calls.def. Each one
// calls, in a frame that all of them share, its effect: `Do<Method>(Call* seen,
// parameters)`. `Call` is a CallRecord, which the effect may complete. These
// macros make the parameters and the arguments of an effect from a row.
#define STRATA_EFFECT_PARAMETERS(...) (Call * seen __VA_OPT__(, ) __VA_ARGS__)
#define STRATA_EFFECT_ARGUMENTS(...) (seen __VA_OPT__(, ) __VA_ARGS__)

// Defines the entry point of a row in the class `Type`: the statement `first`,
// then the function `Run`, which is the frame.
#define STRATA_ENTRY_POINT(Type, method, parameters, arguments, operands, \
                           first)                                         \
  Status Type::method parameters {                                        \
    first;                                                                \
    return Run(DeviceCall::k##method, OperandsOf operands,                \
               StreamAmong arguments, [&]([[maybe_unused]] Call* seen) {  \
                 return Do##method STRATA_EFFECT_ARGUMENTS arguments;     \
               });                                                        \
  }

// The number of an address, handle, enumerator or number in a CallRecord.
template <class Operand>
std::uint64_t NumberOf(const Operand& operand) {
  if constexpr (requires { operand.value; }) {
    return NumberOf(operand.value);
  } else if constexpr (std::is_pointer_v<Operand>) {
    return reinterpret_cast<std::uintptr_t>(operand);
  } else {
    return static_cast<std::uint64_t>(operand);
  }
}

// A record with the operands of a row, not yet with its call.
template <class Ptr = int, class Bytes = int, class Value = int>
CallRecord OperandsOf(Ptr ptr = 0, Bytes bytes = 0, Value value = 0) {
  return RecordOf(DeviceCall::kMemGetInfo, NumberOf(ptr), NumberOf(bytes),
                  NumberOf(value));
}

// The stream among the arguments of a row, or null.
inline const Stream* StreamAmong() { return nullptr; }
template <class First, class... Rest>
const Stream* StreamAmong(const First& first, const Rest&... rest) {
  if constexpr (std::is_same_v<First, Stream>) {
    return &first;
  } else {
    return StreamAmong(rest...);
  }
}

}  // namespace strata

#endif  // STRATA_PLATFORM_CALLS_CALL_FRAME_H_
