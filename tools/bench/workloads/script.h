#ifndef STRATA_TOOLS_BENCH_WORKLOADS_SCRIPT_H_
#define STRATA_TOOLS_BENCH_WORKLOADS_SCRIPT_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace strata::tools {

// One call: allocate `bytes` into the free slot `slot`; or, if `bytes` is 0,
// free the block of the slot.
struct BenchStep {
  std::uint64_t bytes = 0;
  std::uint32_t slot = 0;
};

// The calls of a workload, fixed before the measurement.
//
// Model: `prologue` runs once and is not measured. `loop` runs any number of
//   times. After each run the same slots are filled as before it; from the
//   first run on, with blocks of the same sizes.
struct BenchScript {
  std::vector<BenchStep> prologue;
  std::vector<BenchStep> loop;
  std::size_t slots = 0;
  std::uint64_t peak_live_bytes = 0;  // largest sum of live requests
  // All parts of the loop have the same cost, so that a measurement may end
  // within it. Then each allocation of the loop is next to a free.
  bool is_uniform = false;

  // Allocations in the loop, each with its free.
  std::size_t pairs() const { return loop.size() / 2; }
};

// Computes slots and peak_live_bytes from the steps.
BenchScript Finish(BenchScript script);

// The scripts of the workloads (workload.h). `pairs` is the approximate number
// of pairs in a loop, where the workload does not fix it. Another `seed` draws
// other sizes.

// One block of 4 KiB, freed at once.
BenchScript MakePairScript(std::size_t pairs);

// Rounds of filling 100 blocks of 4 KiB and freeing them in an order.
enum class FreeOrder { kLastFirst, kFirstFirst };
BenchScript MakeTensorScript(std::size_t pairs, FreeOrder order);

// Frees a random one of `live` blocks and replaces it by one of another size,
// from 256 B up to `largest`. The loop replaces each block once on average, so
// that no block is in a cache.
BenchScript MakeReplaceScript(std::size_t pairs, std::size_t live,
                              std::uint64_t largest, std::uint64_t seed);

// Steps of training. Weights remain allocated. Forward: an activation and a
// workspace per operation. Backward: its gradient, a workspace and sometimes
// the gradient of a weight; then the activation is freed. At the end: the
// update of the weights.
//
// Model: kFixed: all steps are equal; nearly all sizes of a step differ.
//   kRepeated: the same with equal layers, as in most models. kJittered: in
//   each step, activations and workspaces are scaled by one factor from 0.5 to
//   1, as with input of changing length.
enum class Shapes { kFixed, kRepeated, kJittered };
BenchScript MakeTrainingScript(Shapes shapes, std::uint64_t seed);

// One pass of a recorded trace (trace_reader.h), with all its streams merged
// into one. Blocks that are live at its end are freed. Requests of 0 bytes are
// left out: they hold no memory.
//
// Errors: TraceError.
BenchScript MakeTraceScript(const std::string& path);

}  // namespace strata::tools

#endif  // STRATA_TOOLS_BENCH_WORKLOADS_SCRIPT_H_
