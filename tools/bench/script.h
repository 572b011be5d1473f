#ifndef STRATA_TOOLS_BENCH_SCRIPT_H_
#define STRATA_TOOLS_BENCH_SCRIPT_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace strata {

// One call: allocate `bytes` into the free slot `slot`, or, if `bytes` is 0,
// free what the slot holds.
struct BenchStep {
  std::uint64_t bytes = 0;
  std::uint32_t slot = 0;
};

// The calls of a workload, decided before anything is measured.
//
// Model: `prologue` is run once and not measured. `loop` is run any number of
//   times: it leaves the same slots filled that it found filled, from the first
//   time on with blocks of the same sizes.
struct BenchScript {
  std::vector<BenchStep> prologue;
  std::vector<BenchStep> loop;
  std::size_t slots = 0;
  std::uint64_t peak_live_bytes = 0;  // the most asked for at once
  // Any part of the loop costs what any other does, so that a measurement may
  // end within it. Each of its allocations then stands next to a free.
  bool is_uniform = false;

  // Allocations in the loop, each with its free.
  std::size_t pairs() const { return loop.size() / 2; }
};

// Counts slots and peak_live_bytes, which follow from the steps.
BenchScript Finish(BenchScript script);

// The scripts of the workloads (workload.h); `pairs` is about how many a loop
// has where the workload does not say. Another `seed` draws other sizes.

// One block of 4 KiB, freed at once.
BenchScript MakePairScript(std::size_t pairs);

// Rounds of filling 100 blocks of 4 KiB and freeing them in an order.
enum class FreeOrder { kLastFirst, kFirstFirst };
BenchScript MakeTensorScript(std::size_t pairs, FreeOrder order);

// A random one of `live` blocks is freed and replaced by one of another size,
// from 256 B up to `largest`. The loop replaces each of them once on average,
// so that it meets none of them in a cache.
BenchScript MakeReplaceScript(std::size_t pairs, std::size_t live,
                              std::uint64_t largest, std::uint64_t seed);

// Steps of training: weights that stay; forward, an activation and a workspace
// per operation; backward, its gradient, a workspace and now and then that of
// a weight, freeing the activation; then the weights' update.
//
// Model: kFixed: one step, every one like it, whose sizes nearly all differ.
//   kRepeated: the same, of layers that are alike, as those of most models are.
//   kJittered: steps whose activations and workspaces, all of one step alike,
//   are scaled by a factor from 0.5 to 1, as with input of changing length.
enum class Shapes { kFixed, kRepeated, kJittered };
BenchScript MakeTrainingScript(Shapes shapes, std::uint64_t seed);

// One pass of a recorded trace (trace_reader.h), all its streams taken as one;
// what it leaves live is freed at the end. Requests of 0 bytes are left out:
// they hold no memory.
//
// Errors: TraceError.
BenchScript MakeTraceScript(const std::string& path);

}  // namespace strata

#endif  // STRATA_TOOLS_BENCH_SCRIPT_H_
