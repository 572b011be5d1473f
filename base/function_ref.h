#ifndef STRATA_BASE_FUNCTION_REF_H_
#define STRATA_BASE_FUNCTION_REF_H_

#include <memory>
#include <type_traits>
#include <utility>

#include "strata/base/require_cxx20.h"

namespace strata {

template <class Signature>
class FunctionRef;

// A reference to a callable that the caller owns, for a parameter that a
// function calls before it returns: `ForEach([&](Chunk& chunk) { … })`.
//
// Model: two pointers. Unlike std::function, it never copies the callable to
//   the heap. So functions that must not fail can take one.
// Lifetime: the callable outlives this.
// Threads: as the callable.
// Source: std::function_ref of C++26 (P0792).
template <class Result, class... Parameters>
class FunctionRef<Result(Parameters...)> {
 public:
  template <class Callable,
            class = std::enable_if_t<
                !std::is_same_v<std::remove_cvref_t<Callable>, FunctionRef> &&
                std::is_invocable_r_v<Result, Callable&, Parameters...>>>
  // NOLINTNEXTLINE(google-explicit-constructor): lambdas are passed as they are
  FunctionRef(Callable&& callable) noexcept
      : callable_(const_cast<void*>(
            static_cast<const void*>(std::addressof(callable)))),
        call_([](void* target, Parameters... parameters) -> Result {
          auto& called =
              *static_cast<std::remove_reference_t<Callable>*>(target);
          if constexpr (std::is_void_v<Result>) {
            static_cast<void>(called(std::forward<Parameters>(parameters)...));
          } else {
            return called(std::forward<Parameters>(parameters)...);
          }
        }) {}

  Result operator()(Parameters... parameters) const {
    return call_(callable_, std::forward<Parameters>(parameters)...);
  }

 private:
  void* callable_;
  Result (*call_)(void* target, Parameters... parameters);
};

}  // namespace strata

#endif  // STRATA_BASE_FUNCTION_REF_H_
