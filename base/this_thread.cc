#include "strata/base/this_thread.h"

#include <type_traits>

namespace strata {

static_assert(std::is_trivially_destructible_v<ThreadState>);

thread_local constinit ThreadState t_this_thread;

}  // namespace strata
