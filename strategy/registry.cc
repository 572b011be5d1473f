#include "strata/strategy/registry.h"

#include <array>
#include <stdexcept>
#include <utility>

#include "strata/strategy/stream_view.h"

namespace strata {
namespace {

enum class SharedBy { stream, place };

struct Row {
  const char* name;
  SharedBy shared_by;
  std::shared_ptr<Allocator> (*make)(std::shared_ptr<ChunkPool>,
                                     std::shared_ptr<ChainStream>,
                                     const StrategyOptions&);
};

constexpr std::array kRows = {
#define STRATA_STRATEGY(name, Class, shared_by) \
  Row{#name, SharedBy::shared_by, &Make##Class},
#include "strata/strategy/strategies.def"
#undef STRATA_STRATEGY
};

const Row& RowOf(const std::string& name) {
  std::string known;
  for (const Row& row : kRows) {
    if (name == row.name) return row;
    known += (known.empty() ? "" : ", ") + std::string(row.name);
  }
  throw std::invalid_argument("allocator_strategy: unknown strategy '" + name +
                              "' (known: " + known + ")");
}

}  // namespace

std::vector<std::string> StrategyNames() {
  std::vector<std::string> names;
  for (const Row& row : kRows) names.emplace_back(row.name);
  return names;
}

StrategySource::StrategySource(const std::string& name,
                               std::shared_ptr<ChunkPool> pool,
                               const StrategyOptions& options)
    : pool_(std::move(pool)), options_(options) {
  const Row& row = RowOf(name);
  make_ = row.make;
  is_shared_ = row.shared_by == SharedBy::place;
}

std::shared_ptr<Allocator> StrategySource::For(
    std::shared_ptr<ChainStream> stream) {
  if (!is_shared_) return make_(pool_, std::move(stream), options_);
  const std::lock_guard<std::mutex> guard(mutex_);
  if (shared_ == nullptr) {
    auto order = std::make_shared<SharedOrder>();
    shared_ = make_(pool_, order, options_);
    order_ = std::move(order);
  }
  if (stream->device() == nullptr) return shared_;
  return std::make_shared<StreamView>(shared_, order_, std::move(stream));
}

std::shared_ptr<Allocator> StrategySource::shared() const {
  const std::lock_guard<std::mutex> guard(mutex_);
  return shared_;
}

}  // namespace strata
