#include "strata/facade/lookup/front_route.h"

namespace strata {

thread_local constinit FrontRoute t_stream_route;
thread_local constinit FrontRoute t_handle_route;
thread_local constinit FrontRoute t_default_route;

}  // namespace strata
