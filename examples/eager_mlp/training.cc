#include "strata/examples/eager_mlp/training.h"

#include <cstdint>
#include <memory>
#include <utility>

#include "strata/examples/eager_mlp/data.h"
#include "strata/examples/eager_mlp/model.h"
#include "strata/examples/eager_mlp/ops.h"
#include "strata/examples/eager_mlp/runtime.h"
#include "strata/examples/eager_mlp/tape.h"
#include "strata/facade/graphs/capture_guard.h"

namespace eager_mlp {

using strata::Tensor;

namespace {

constexpr int kBatches = 8;
constexpr int kRows = 32;
constexpr int kIn = 8;
constexpr int kHidden = 48;
constexpr int kOut = 4;
constexpr std::uint64_t kSeed = 1;

// A model, its data set, and its losses on the host.
class Training {
 public:
  Training(strata::AllocatorFacade& facade, int steps)
      : runtime_(facade),
        data_(runtime_, kBatches, kRows, kIn, kOut, kSeed),
        loader_(runtime_, data_),
        model_(runtime_, {kIn, kHidden, kHidden, kOut}, kSeed),
        optimizer_(runtime_, model_.parameters()),
        losses_(runtime_.MakePinned({steps, 1})) {}

  Runtime& runtime() { return runtime_; }
  Loader& loader() { return loader_; }

  // Submits one step. Returns the tensor for its loss.
  Tensor Step(const Batch& batch) {
    Tape tape;
    const Variable predicted = model_.Forward(tape, batch.x);
    Tensor loss = SquaredErrorOp(runtime_, tape, predicted, batch.y);
    tape.Backward();
    optimizer_.Step();
    return loss;
  }
  void KeepLoss(int step, const Tensor& loss) {
    const Tensor target = losses_.SubSlice(step);
    runtime_.Copy(target, loss, runtime_.compute());
    runtime_.EndUse(target, runtime_.compute());
  }

  // Waits for all submitted work.
  Trained Result() {
    Trained result;
    result.parameters = model_.Download();
    const auto* losses = losses_.data<float>();
    result.losses.assign(losses, losses + losses_.num_elements());
    return result;
  }

 private:
  Runtime runtime_;
  DataSet data_;
  Loader loader_;
  Mlp model_;
  Optimizer optimizer_;
  Tensor losses_;
};

// A step as a graph, with its input batch and its output loss.
class CapturedStep {
 public:
  explicit CapturedStep(Training& training)
      : runtime_(training.runtime()),
        batch_{runtime_.Make({kRows, kIn}), runtime_.Make({kRows, kOut})} {
    // Earlier kernels are complete, so that their arguments do not belong to
    // the graph.
    runtime_.Synchronize();
    strata::CaptureGuard guard(runtime_.facade(), runtime_.compute());
    loss_ = training.Step(batch_);
    graph_ = guard.End();
    arguments_ = runtime_.TakeArguments();
    Check(runtime_.device().GraphInstantiate(&exec_, graph_, 0),
          "instantiate the graph");
  }
  CapturedStep(const CapturedStep&) = delete;
  CapturedStep& operator=(const CapturedStep&) = delete;
  ~CapturedStep() {
    runtime_.device().Synchronize();
    runtime_.device().GraphExecDestroy(exec_);
    runtime_.device().GraphDestroy(graph_);
  }

  // Input of the graph.
  const Batch& batch() const { return batch_; }
  // Submits the step. Returns the tensor for its loss.
  const Tensor& Launch() {
    Check(runtime_.device().GraphLaunch(exec_, runtime_.compute()),
          "launch the graph");
    return loss_;
  }

 private:
  Runtime& runtime_;
  const Batch batch_;
  Tensor loss_;  // memory of the graph's pool
  std::vector<std::shared_ptr<void>> arguments_;
  strata::Graph graph_;
  strata::GraphExec exec_;
};

}  // namespace

Trained TrainEager(strata::AllocatorFacade& facade, int steps) {
  Training training(facade, steps);
  for (int step = 0; step < steps; ++step) {
    const Batch batch = training.loader().Next();
    training.KeepLoss(step, training.Step(batch));
    training.loader().Return(batch);
  }
  return training.Result();
}

Trained TrainCaptured(strata::AllocatorFacade& facade, int steps) {
  Training training(facade, steps);
  CapturedStep captured(training);
  Runtime& runtime = training.runtime();
  for (int step = 0; step < steps; ++step) {
    const Batch batch = training.loader().Next();
    // Copy the batch, because the addresses in the graph are fixed.
    runtime.Copy(captured.batch().x, batch.x, runtime.compute());
    runtime.Copy(captured.batch().y, batch.y, runtime.compute());
    training.loader().Return(batch);
    training.KeepLoss(step, captured.Launch());
  }
  return training.Result();
}

}  // namespace eager_mlp
