// The training workloads, with the proportions of hotpath.md §1 (w4, w4j).

#include <utility>

#include "strata/base/size.h"
#include "strata/tools/bench/workloads/random.h"
#include "strata/tools/bench/workloads/script.h"

namespace strata::tools {
namespace {

constexpr std::uint32_t kWeights = 200;
constexpr std::uint32_t kOperations = 500;
// One operation in this many has a weight.
constexpr std::uint32_t kOperationsPerWeight = 5;
constexpr std::uint32_t kGradientOperations =
    kOperations / kOperationsPerWeight;  // each with two weights
constexpr std::uint64_t kRoundBytes = 512;
constexpr int kJitteredSteps = 20;
// The number of equal layers: a step then has at most 68 sizes. Recorded steps
// of training have 29 to 114.
constexpr std::uint32_t kLayers = 25;

// The slots of blocks that may be live at once.
constexpr std::uint32_t kWeightSlots = 0;
constexpr std::uint32_t kWeightGradientSlots = kWeightSlots + kWeights;
constexpr std::uint32_t kActivationSlots = kWeightGradientSlots + kWeights;
// At most two gradients of activations are live.
constexpr std::uint32_t kGradientSlots = kActivationSlots + kOperations;
constexpr std::uint32_t kWorkspaceSlot = kGradientSlots + 2;

struct LayerOperation {
  std::uint64_t activation_bytes;
  std::uint64_t forward_workspace_bytes;
  std::uint64_t backward_workspace_bytes;
};

struct Model {
  std::vector<std::uint64_t> weight_bytes;
  std::vector<LayerOperation> operations;
};

std::uint64_t Round(double bytes) {
  return AlignUp(static_cast<std::uint64_t>(bytes), kRoundBytes);
}

// A model of `layers` equal layers.
Model MakeModel(BenchRandom& random, std::uint32_t layers) {
  const auto bytes = [&](std::uint64_t smallest, std::uint64_t largest) {
    return Round(static_cast<double>(random.Bytes(smallest, largest)));
  };
  Model layer;
  for (std::uint32_t i = 0; i < kWeights / layers; ++i) {
    layer.weight_bytes.push_back(bytes(Kibibytes(1), Mebibytes(16)));
  }
  for (std::uint32_t i = 0; i < kOperations / layers; ++i) {
    layer.operations.push_back({bytes(Kibibytes(64), Mebibytes(16)),
                                bytes(Kibibytes(16), Mebibytes(32)),
                                bytes(Kibibytes(16), Mebibytes(32))});
  }
  Model model;
  for (std::uint32_t i = 0; i < kWeights; ++i) {
    model.weight_bytes.push_back(
        layer.weight_bytes[i % layer.weight_bytes.size()]);
  }
  for (std::uint32_t i = 0; i < kOperations; ++i) {
    model.operations.push_back(layer.operations[i % layer.operations.size()]);
  }
  return model;
}

// Appends steps of training to a loop.
class StepWriter {
 public:
  StepWriter(const Model& model, std::vector<BenchStep>& loop)
      : model_(model), loop_(loop) {}

  void Step(double scale) {
    scale_ = scale;
    Forward();
    Backward();
    Update();
  }

 private:
  void Allocate(std::uint32_t slot, std::uint64_t bytes) {
    loop_.push_back({bytes, slot});
  }
  void Free(std::uint32_t slot) { loop_.push_back({0, slot}); }
  std::uint64_t Scaled(std::uint64_t bytes) const {
    return Round(static_cast<double>(bytes) * scale_);
  }
  void UseWorkspace(std::uint64_t bytes) {
    Allocate(kWorkspaceSlot, bytes);
    Free(kWorkspaceSlot);
  }

  void Forward() {
    for (std::uint32_t i = 0; i < kOperations; ++i) {
      const LayerOperation& operation = model_.operations[i];
      Allocate(kActivationSlots + i, Scaled(operation.activation_bytes));
      UseWorkspace(Scaled(operation.forward_workspace_bytes));
    }
  }

  // From the last operation to the first. A gradient lives until the preceding
  // operation's gradient is allocated.
  void Backward() {
    for (std::uint32_t left = kOperations; left > 0; --left) {
      const std::uint32_t i = left - 1;
      const LayerOperation& operation = model_.operations[i];
      Allocate(kGradientSlots + i % 2, Scaled(operation.activation_bytes));
      UseWorkspace(Scaled(operation.backward_workspace_bytes));
      if (i % kOperationsPerWeight == 0) AllocateWeightGradients(i);
      if (left < kOperations) Free(kGradientSlots + left % 2);
      Free(kActivationSlots + i);
    }
    Free(kGradientSlots);
  }

  void AllocateWeightGradients(std::uint32_t operation) {
    const std::uint32_t first = operation / kOperationsPerWeight * 2;
    for (const std::uint32_t weight : {first, first + 1}) {
      Allocate(kWeightGradientSlots + weight, model_.weight_bytes[weight]);
    }
  }

  // Every second weight needs a temporary block.
  void Update() {
    for (std::uint32_t i = 0; i < kWeights; ++i) {
      if (i % 2 == 0) UseWorkspace(model_.weight_bytes[i]);
      Free(kWeightGradientSlots + i);
    }
  }

  const Model& model_;
  std::vector<BenchStep>& loop_;
  double scale_ = 1;
};

static_assert(kGradientOperations * 2 == kWeights);
static_assert(kWeights % kLayers == 0 && kOperations % kLayers == 0);

}  // namespace

BenchScript MakeTrainingScript(Shapes shapes, std::uint64_t seed) {
  BenchRandom random(seed);
  const Model model =
      MakeModel(random, shapes == Shapes::kRepeated ? kLayers : 1);
  BenchScript script;
  for (std::uint32_t i = 0; i < kWeights; ++i) {
    script.prologue.push_back({model.weight_bytes[i], kWeightSlots + i});
  }
  StepWriter writer(model, script.loop);
  if (shapes == Shapes::kJittered) {
    for (int i = 0; i < kJitteredSteps; ++i) {
      writer.Step(0.5 + random.Unit() / 2);
    }
  } else {
    writer.Step(1);
  }
  return Finish(std::move(script));
}

}  // namespace strata::tools
