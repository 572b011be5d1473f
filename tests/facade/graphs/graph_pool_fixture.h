#ifndef STRATA_TESTS_FACADE_GRAPHS_GRAPH_POOL_FIXTURE_H_
#define STRATA_TESTS_FACADE_GRAPHS_GRAPH_POOL_FIXTURE_H_

#include <cstddef>

#include "strata/base/size.h"
#include "strata/tests/facade/graphs/graph_fixture.h"

namespace strata {

// Two streams, and a facade with its default options.
class GraphPoolTest : public GraphFixture {
 protected:
  static constexpr std::size_t kBytes = std::size_t{256} << 10;
  // Enough for a separate chunk.
  static constexpr std::size_t kLargeBytes = Mebibytes(12);

  GraphPoolTest() : stream_(NewStream()), other_(NewStream()) { Build(); }

  const Stream stream_;
  const Stream other_;
};

}  // namespace strata

#endif  // STRATA_TESTS_FACADE_GRAPHS_GRAPH_POOL_FIXTURE_H_
