#include "strata/platform/sim/graphs/exec_plan.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <random>
#include <vector>

namespace strata::sim {
namespace {

SimNode NodeOn(int device) {
  SimNode node;
  node.device = device;
  node.action = HostAction();
  return node;
}

ExecPlan PlanOf(const SimGraph& graph) { return {graph, {}, 0, {}}; }

// For each node, the nodes that it waits for in the plan, directly or not.
std::vector<NodeSet> OrderOf(const ExecPlan& plan) {
  std::vector<NodeSet> order(plan.nodes().size());
  std::vector<int> last(plan.lanes().size(), -1);
  for (std::size_t i = 0; i < plan.nodes().size(); ++i) {
    const ExecPlan::Node& node = plan.nodes()[i];
    std::vector<NodeIndex> before = node.waits;
    if (last[node.lane] >= 0) {
      before.push_back(static_cast<NodeIndex>(last[node.lane]));
    }
    for (const NodeIndex p : before) {
      order[i].Join(order[p]);
      order[i].Add(p);
    }
    last[node.lane] = static_cast<int>(i);
  }
  return order;
}

TEST(ExecPlanTest, ChainIsOneLane) {
  SimGraph graph;
  graph.Add(NodeOn(0), {});
  for (NodeIndex i = 0; i < 9; ++i) graph.Add(NodeOn(0), {i});
  const ExecPlan plan = PlanOf(graph);
  EXPECT_EQ(plan.lanes().size(), 1u);
  for (const ExecPlan::Node& node : plan.nodes()) {
    EXPECT_TRUE(node.waits.empty());
    EXPECT_FALSE(node.is_awaited);
  }
}

TEST(ExecPlanTest, LanesAreUsedAgain) {
  SimGraph graph;
  NodeIndex tip = graph.Add(NodeOn(0), {});
  for (int i = 0; i < 10; ++i) {
    const NodeIndex left = graph.Add(NodeOn(0), {tip});
    const NodeIndex right = graph.Add(NodeOn(0), {tip});
    tip = graph.Add(NodeOn(0), {left, right});
  }
  EXPECT_EQ(PlanOf(graph).lanes().size(), 2u);
}

TEST(ExecPlanTest, LaneIsOfOneDevice) {
  SimGraph graph;
  const NodeIndex near = graph.Add(NodeOn(0), {});
  const NodeIndex far = graph.Add(NodeOn(1), {near});
  graph.Add(NodeOn(0), {far});
  const ExecPlan plan = PlanOf(graph);
  EXPECT_EQ(plan.lanes(), (std::vector<int>{0, 1}));
  EXPECT_EQ(plan.nodes()[1].lane, 1u);
  EXPECT_EQ(plan.nodes()[1].waits, (std::vector<NodeIndex>{near}));
  EXPECT_TRUE(plan.nodes()[0].is_awaited);
}

// Lanes and waits produce exactly the order of the graph.
TEST(ExecPlanTest, OrderIsTheGraphs) {
  std::mt19937 random(1);
  for (int round = 0; round < 200; ++round) {
    SimGraph graph;
    for (NodeIndex i = 0; i < 25; ++i) {
      std::vector<NodeIndex> before;
      for (int n = 0; n < 2 && i > 0; ++n) {
        if (random() % 3 != 0) {
          before.push_back(static_cast<NodeIndex>(random() % i));
        }
      }
      graph.Add(NodeOn(static_cast<int>(random() % 2)), before);
    }
    const ExecPlan plan = PlanOf(graph);
    const auto order = OrderOf(plan);
    for (NodeIndex i = 0; i < 25; ++i) {
      for (NodeIndex j = 0; j < i; ++j) {
        ASSERT_EQ(order[i].Contains(j), graph.nodes()[i].ancestors.Contains(j))
            << "round " << round << ", nodes " << j << " and " << i;
      }
    }
  }
}

TEST(ExecPlanTest, PlanIsFrozen) {
  SimGraph graph;
  graph.Add(NodeOn(0), {});
  const ExecPlan plan = PlanOf(graph);
  graph.Add(NodeOn(0), {});
  EXPECT_EQ(plan.nodes().size(), 1u);
  EXPECT_EQ(plan.graph()->nodes().size(), 1u);
}

}  // namespace
}  // namespace strata::sim
