#include "strata/tests/testing/explore/explorer.h"

#include <algorithm>
#include <map>
#include <set>
#include <unordered_set>
#include <utility>

namespace strata {
namespace {

using Program = std::vector<ExploredStep>;

struct Outcome {
  std::uint64_t state = 0;
  std::vector<ExploredStep> enabled;
  std::uint64_t refusals = 0;
  std::string findings;
};

// FNV-1a with a stronger finalizer. States are compared by this hash.
std::uint64_t HashOf(const std::string& text) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char c : text) {
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  }
  hash ^= hash >> 32;
  hash *= 0xd6e8feb86659fd93;
  return hash ^ hash >> 32;
}

// `goes_on`: the caller will need the next steps.
Outcome Run(const ExploreOptions& options, const Program& program,
            bool goes_on) {
  ExploredProgram explored(options);
  for (const ExploredStep& step : program) explored.Do(step);
  Outcome outcome;
  if (goes_on) {
    outcome.state = HashOf(explored.State());
    outcome.enabled = explored.Enabled();
  }
  explored.Finish();
  outcome.refusals = explored.refusals();
  outcome.findings = explored.findings();
  return outcome;
}

std::string TextOf(const Program& program) {
  std::string text;
  for (const ExploredStep& step : program) text += ToString(step) + "; ";
  return text;
}

struct Open {
  Program program;
  std::vector<ExploredStep> enabled;
};

// Runs the common beginning of all programs, if it is correct.
Outcome RunFirst(const ExploreOptions& options) {
  Program program;
  Outcome outcome = Run(options, program, true);
  for (const ExploredStep& step : options.begin_with) {
    const bool is_enabled =
        std::any_of(outcome.enabled.begin(), outcome.enabled.end(),
                    [&](const ExploredStep& other) {
                      return ToString(other) == ToString(step);
                    });
    if (!is_enabled) {
      outcome.findings = "cannot begin with " + ToString(step);
      break;
    }
    program.push_back(step);
    outcome = Run(options, program, true);
    if (!outcome.findings.empty()) break;
  }
  return outcome;
}

}  // namespace

Exploration Explore(const ExploreOptions& options, std::size_t steps) {
  Exploration result;
  std::unordered_set<std::uint64_t> states;
  const Outcome first = RunFirst(options);
  states.insert(first.state);
  result.finding = first.findings;
  std::vector<Open> level = {{options.begin_with, first.enabled}};
  for (std::size_t depth = 1; depth <= steps && result.finding.empty();
       ++depth) {
    std::vector<Open> next;
    for (const Open& open : level) {
      for (const ExploredStep& step : open.enabled) {
        Program program = open.program;
        program.push_back(step);
        Outcome outcome = Run(options, program, depth < steps);
        ++result.programs;
        result.refusals += outcome.refusals;
        if (!outcome.findings.empty()) {
          result.finding = TextOf(program) + "\n" + outcome.findings;
          result.states = states.size();
          return result;
        }
        if (depth < steps && states.insert(outcome.state).second) {
          next.push_back({std::move(program), std::move(outcome.enabled)});
        }
      }
    }
    level = std::move(next);
  }
  result.states = states.size();
  return result;
}

std::string DifferentFutures(const ExploreOptions& options, std::size_t steps) {
  struct Known {
    Program program;
    std::set<std::uint64_t> next;
  };
  std::map<std::uint64_t, Known> known;
  const Outcome first = RunFirst(options);
  struct Reached : Open {
    std::uint64_t state = 0;
  };
  std::vector<Reached> level(1);
  level[0].program = options.begin_with;
  level[0].enabled = first.enabled;
  level[0].state = first.state;
  for (std::size_t depth = 1; depth <= steps; ++depth) {
    std::vector<Reached> next;
    for (const Reached& open : level) {
      Known now{open.program, {}};
      for (const ExploredStep& step : open.enabled) {
        Reached reached;
        reached.program = open.program;
        reached.program.push_back(step);
        Outcome outcome = Run(options, reached.program, true);
        now.next.insert(outcome.state);
        reached.enabled = std::move(outcome.enabled);
        reached.state = outcome.state;
        if (depth < steps) next.push_back(std::move(reached));
      }
      const auto [entry, is_new] = known.emplace(open.state, now);
      if (!is_new && entry->second.next != now.next) {
        return TextOf(entry->second.program) + "\nand " + TextOf(now.program);
      }
    }
    level = std::move(next);
  }
  return "";
}

}  // namespace strata
