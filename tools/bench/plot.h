#ifndef STRATA_TOOLS_BENCH_PLOT_H_
#define STRATA_TOOLS_BENCH_PLOT_H_

#include <string>
#include <vector>

#include "strata/tools/bench/bench.h"

namespace strata::tools {

// Whether the workload belongs to a family that differs in a number (live
// blocks or threads), over which a plot can be drawn.
bool IsPlotted(const BenchWorkload& workload);

// The medians as an SVG picture: a panel for each family of workloads that
// IsPlotted, both axes logarithmic, and a line for each allocator. Rows without
// a median are not in it.
std::string ToSvg(const std::vector<BenchRow>& rows);

}  // namespace strata::tools

#endif  // STRATA_TOOLS_BENCH_PLOT_H_
