// The state of a program under exploration, as text. Programs with equal states
// have the same future.
//
// The state is written once for each naming of the streams, and the smallest
// text is the result. It contains:
//   - blocks as the strategies list them: by rank of chunk and offset, with
//     sizes; and the bytes reserved and in use at the place;
//   - blocks of the program, live or freed last at their address: stream, marks
//     and their events, ordering, uses, and the captures that keep them alive;
//   - for each stream, its pending work and the work that it waits for;
//   - for each stream, the host and each event, the positions in all streams
//     that precede it. A position counts only by its rank among the referenced
//     positions: uses of blocks, frees, launches, and events that the host has
//     not seen complete;
//   - if streams share a strategy: the number of frees of each stream, and
//     whether it freed since the last request of each other stream;
//   - the number of refused requests of each stream: bfc grows in smaller steps
//     after a refusal;
//   - captures: the streams that take part, the steps in order, the content of
//     the graph, and the blocks from outside. If captures share a pool: the
//     graph launched last.
// It omits everything that neither the checker nor an allocator can query
// again: completed work without references, the values of addresses, events,
// numbers and stored words, and counters that only rise. Policies may have
// hidden counters (such as the number of small loans to a stream). So this
// state is an abstraction; ExplorationTest.EqualStatesHaveEqualFutures checks
// that it omits nothing that matters.

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "strata/tests/testing/explore/explored_program.h"

namespace strata {
namespace {

// The blocks of every strategy at a place.
class BlockList final : public AllocatorVisitor {
 public:
  void VisitLayer(const Allocator& /*layer*/) override {}
  void VisitBlocks(const Allocator& layer,
                   const std::vector<BlockInfo>& blocks) override {
    layers[&layer] = blocks;
  }

  std::map<const Allocator*, std::vector<BlockInfo>> layers;
};

// Finds the strategy at the end of a chain, if it lists its blocks.
class StrategyFinder final : public AllocatorVisitor {
 public:
  void VisitLayer(const Allocator& /*layer*/) override {}
  void VisitBlocks(const Allocator& layer,
                   const std::vector<BlockInfo>& /*blocks*/) override {
    found = &layer;
  }

  const Allocator* found = nullptr;
};

std::uintptr_t AddressOf(const void* data) {
  return reinterpret_cast<std::uintptr_t>(data);
}

}  // namespace

// Writes the state for one naming of the streams.
class ExploredProgram::StateWriter {
 public:
  explicit StateWriter(ExploredProgram& program) : program_(program) {
    program.facade_->AcceptAll(DevicePlace(0), blocks_);
    for (std::size_t s = 0; s < program.options_.streams; ++s) {
      if ((program.has_chain_ & Bit(s)) == 0) continue;
      StrategyFinder finder;
      program.facade_->GetAllocator(DevicePlace(0), program.stream(s))
          .Accept(finder);
      strategy_of_[s] = finder.found;
    }
    for (std::size_t i = 0; i < program.lives_.size(); ++i) {
      latest_[program.lives_[i].address] = i;
    }
    RankAddresses();
    RankPlaces();
  }

  // `names` is the name of each stream, `streams` the stream of each name.
  std::string Write(const std::array<std::size_t, kMaxStreams>& names,
                    const std::array<std::size_t, kMaxStreams>& streams) {
    text_.clear();
    names_ = names;
    streams_ = streams;
    WriteStreams();
    WriteEvents();
    if (program_.has_launched_) {
      WriteEvent(LastLaunch());
    }
    WriteBlocks();
    for (const auto& [address, index] : latest_) WriteLife(index);
    for (const Capture& capture : program_.captures_) WriteCapture(capture);
    return text_;
  }

 private:
  std::size_t stream_count() const { return program_.order_->stream_count(); }
  std::size_t own_count() const { return program_.options_.streams; }

  // True if the block was freed by work of that stream.
  static bool IsConcerned(const Life& life, std::size_t stream) {
    return life.allocation == nullptr &&
           (stream == life.owner ||
            ((life.marked & Bit(stream)) != 0 && life.moments[stream].empty()));
  }

  bool IsOwn(std::uint64_t event) const {
    return std::any_of(
        program_.events_.begin(), program_.events_.end(),
        [event](const Event& own) { return AddressOf(own.value) == event; });
  }
  const ExploredOrder::Recorded& LastLaunch() const {
    return program_.order_->recorded(program_.events_[kLaunchEvent]);
  }
  // Null if a wait for it is no longer possible, or if it was recorded in a
  // capture.
  const ExploredOrder::Recorded* ReadyOf(const Life& life) const {
    const auto& events = program_.order_->events();
    const auto ready = events.find(AddressOf(life.ready.value));
    const bool is_known = life.allocation != nullptr && ready != events.end();
    return is_known ? &ready->second : nullptr;
  }

  void RankAddresses() {
    for (const auto& [layer, blocks] : blocks_.layers) {
      for (const BlockInfo& block : blocks) {
        chunks_.insert(AddressOf(block.chunk_base));
      }
    }
    std::size_t rank = 0;
    for (const auto& [address, index] : latest_) ranks_[address] = rank++;
  }

  void RankEvent(const ExploredOrder::Recorded& recorded) {
    if (recorded.seen) return;
    places_[recorded.at.stream].insert(recorded.at.position);
  }

  // Ranks the referenced positions of the streams.
  void RankPlaces() {
    places_.resize(stream_count());
    for (std::size_t s = 0; s < own_count(); ++s) {
      for (const Work& work : program_.work_[s]) {
        if (work.position > program_.order_->Completed(s)) {
          places_[s].insert(work.position);
        }
      }
      for (const auto& [address, index] : latest_) {
        const Life& life = program_.lives_[index];
        places_[s].insert(life.last_use[s]);
        if (IsConcerned(life, s)) places_[s].insert(life.freed_at[s]);
      }
    }
    for (const auto& [address, index] : latest_) {
      const Life& life = program_.lives_[index];
      if (const auto* ready = ReadyOf(life)) RankEvent(*ready);
      for (const ExploredOrder::Clock& moment : life.moments) {
        for (std::size_t s = 0; s < moment.size(); ++s) {
          places_[s].insert(moment[s]);
        }
      }
    }
    for (const auto& [event, recorded] : program_.order_->events()) {
      if (!IsOwn(event)) RankEvent(recorded);
    }
    for (const Capture& capture : program_.captures_) {
      places_[capture.origin].insert(capture.launched_at);
      for (const Event event : capture.later_uses) {
        RankEvent(program_.order_->recorded(event));
      }
    }
    if (program_.has_launched_) RankEvent(LastLaunch());
    // All positions after the last one that the host has seen.
    for (std::size_t s = 0; s < stream_count(); ++s) {
      auto& places = places_[s];
      places.erase(places.begin(),
                   places.upper_bound(program_.order_->Seen(s)));
    }
  }

  void Number(std::uint64_t number) {
    while (number >= 0x80) {
      text_ += static_cast<char>(number | 0x80);
      number >>= 7;
    }
    text_ += static_cast<char>(number);
  }
  std::size_t NameOf(std::size_t stream) const {
    return stream < own_count() ? names_[stream] : stream;
  }
  std::size_t StreamOf(std::size_t name) const {
    return name < own_count() ? streams_[name] : name;
  }
  void Streams(Mask mask) {
    Mask named = 0;
    for (std::size_t s = 0; s < own_count(); ++s) {
      if ((mask & Bit(s)) != 0) named |= Bit(names_[s]);
    }
    Number(named);
  }
  // Number of positions of the stream that are not after it.
  void Place(std::size_t stream, Position position) {
    const auto& places = places_[stream];
    Number(static_cast<std::uint64_t>(
        std::distance(places.begin(), places.upper_bound(position))));
  }
  void Address(std::uintptr_t address) {
    const auto rank = ranks_.find(address);
    Number(rank == ranks_.end() ? ranks_.size() : rank->second);
  }

  void WriteStreams() {
    const ExploredOrder& order = *program_.order_;
    for (std::size_t name = 0; name < stream_count(); ++name) {
      const std::size_t s = StreamOf(name);
      if (s < own_count()) {
        Number((program_.used_ & Bit(s)) != 0 ? 1 : 0);
        Number((program_.has_chain_ & Bit(s)) != 0 ? 1 : 0);
        Number(program_.refused_[s]);
        Number(program_.capture_of_[s] + 1);
        WriteWork(s);
        if (program_.options_.shares_strategy) WriteFrees(s);
      }
      Place(s, order.Completed(s));
      Number(order.Submitted(s) - order.Completed(s));
      Place(s, order.Seen(s));
      for (std::size_t other = 0; other < stream_count(); ++other) {
        Place(StreamOf(other), order.Before(s, StreamOf(other)));
      }
      for (const ExploredOrder::Wait& wait : order.waits(s)) {
        if (wait.position < order.Completed(s)) continue;
        const ExploredOrder::Point& target = wait.target;
        if (target.position <= order.Completed(target.stream)) continue;
        Place(s, wait.position);
        Number(NameOf(target.stream));
        Place(target.stream, target.position);
      }
      text_ += '|';
    }
    Number(program_.platform_->sim_device(0).PendingCount());
  }

  void WriteFrees(std::size_t s) {
    Number(program_.frees_[s]);
    for (std::size_t name = 0; name < own_count(); ++name) {
      const std::size_t other = streams_[name];
      Number(program_.frees_seen_[other][s] != program_.frees_[s] ? 1 : 0);
    }
  }

  void WriteWork(std::size_t s) {
    for (const Work& work : program_.work_[s]) {
      if (work.position <= program_.order_->Completed(s)) continue;
      Place(s, work.position);
      if (work.life != kNone) Address(program_.lives_[work.life].address);
      Number(work.capture + 1);
    }
    text_ += '|';
  }

  // Writes the allocator's events that the host has not seen complete.
  void WriteEvents() {
    std::vector<std::string> events;
    std::string before = std::move(text_);
    for (const auto& [event, recorded] : program_.order_->events()) {
      if (recorded.seen) continue;
      text_.clear();
      // The program's own events are written with their blocks.
      if (IsOwn(event)) continue;
      WriteEvent(recorded);
      events.push_back(text_);
    }
    std::sort(events.begin(), events.end());
    text_ = std::move(before);
    for (const std::string& event : events) text_ += event;
    text_ += '|';
  }

  void WriteEvent(const ExploredOrder::Recorded& recorded) {
    Number(NameOf(recorded.at.stream));
    Place(recorded.at.stream, recorded.at.position);
    WriteClock(recorded.before);
  }

  void WriteClock(const ExploredOrder::Clock& clock) {
    for (std::size_t name = 0; name < stream_count(); ++name) {
      const std::size_t s = StreamOf(name);
      Place(s, ExploredOrder::At(clock, s));
    }
  }

  void WriteBlocks() {
    std::vector<std::string> layers;
    std::string before = std::move(text_);
    for (const auto& [layer, blocks] : blocks_.layers) {
      text_.clear();
      // The streams of the strategy: one stream, all streams, or the streams of
      // a pool.
      Mask mask = 0;
      for (std::size_t s = 0; s < own_count(); ++s) {
        if (strategy_of_[s] == layer) mask |= Bit(s);
      }
      Streams(mask);
      for (const BlockInfo& block : blocks) {
        const std::uintptr_t chunk = AddressOf(block.chunk_base);
        Number(static_cast<std::uint64_t>(
            std::distance(chunks_.begin(), chunks_.find(chunk))));
        Number(AddressOf(block.data) - chunk);
        Number(block.size_bytes);
        Number(static_cast<std::uint64_t>(block.state));
        Address(AddressOf(block.data));
      }
      layers.push_back(text_);
    }
    std::sort(layers.begin(), layers.end());
    text_ = std::move(before);
    for (const std::string& layer : layers) text_ += layer + "|";
    const Stats stats = program_.facade_->GetStats(DevicePlace(0));
    Number(stats.reserved_bytes);
    Number(stats.in_use_bytes);
    Number(stats.chunks);
  }

  void WriteLife(std::size_t index) {
    const Life& life = program_.lives_[index];
    Number(life.allocation != nullptr ? 1 : 0);
    Number(NameOf(life.owner));
    Number(life.capture + 1);
    Streams(life.marks);
    Streams(life.marked);
    Streams(life.needs);
    Streams(life.ordered);
    Number(life.held);
    Number(life.captured_use ? 1 : 0);
    for (std::size_t name = 0; name < own_count(); ++name) {
      Place(streams_[name], life.last_use[streams_[name]]);
      if (IsConcerned(life, streams_[name])) {
        Place(streams_[name], life.freed_at[streams_[name]]);
      }
    }
    if (program_.options_.marks_name_events) WriteMoments(life);
    if (const auto* ready = ReadyOf(life)) WriteClock(ready->before);
    text_ += '|';
  }

  // Writes the work that the marks with an event wait for, and whether the next
  // mark of each stream would have an event.
  void WriteMoments(const Life& life) {
    for (std::size_t name = 0; name < own_count(); ++name) {
      const std::size_t s = streams_[name];
      Number(life.used[s] ? 1 : 0);
      Number(life.moments[s].empty() ? 0 : 1);
      if (!life.moments[s].empty()) WriteClock(life.moments[s]);
    }
  }

  void WriteCapture(const Capture& capture) {
    Number(NameOf(capture.origin));
    Streams(capture.streams);
    Number(capture.guard != nullptr ? 1 : 0);
    Number(capture.valid ? 1 : 0);
    Place(capture.origin, capture.launched_at);
    WriteHistory(capture.history);
    for (const std::size_t input : capture.inputs) {
      Address(program_.lives_[input].address);
      Number(latest_.at(program_.lives_[input].address) == input ? 1 : 0);
    }
    text_ += '|';
    for (const Event event : capture.later_uses) {
      const auto& recorded = program_.order_->recorded(event);
      Number(NameOf(recorded.at.stream));
      Place(recorded.at.stream, recorded.at.position);
    }
    text_ += '|';
  }

  void WriteHistory(const std::string& history) {
    constexpr std::size_t kEntry = 2 + sizeof(std::uintptr_t);
    for (std::size_t at = 0; at < history.size(); at += kEntry) {
      std::uintptr_t address = 0;
      std::memcpy(&address, history.data() + at + 2, sizeof address);
      Number(static_cast<unsigned char>(history[at]));
      Number(NameOf(static_cast<unsigned char>(history[at + 1])));
      Address(address);
    }
    text_ += '|';
  }

  ExploredProgram& program_;
  BlockList blocks_;
  std::array<const Allocator*, kMaxStreams> strategy_of_{};
  std::map<std::uintptr_t, std::size_t> latest_;  // address to life
  std::map<std::uintptr_t, std::size_t> ranks_;   // of the addresses in latest_
  std::set<std::uintptr_t> chunks_;
  std::vector<std::set<Position>> places_;  // by stream
  std::array<std::size_t, kMaxStreams> names_{};
  std::array<std::size_t, kMaxStreams> streams_{};
  std::string text_;
};

std::string ExploredProgram::State() {
  StateWriter writer(*this);
  std::array<std::size_t, kMaxStreams> streams{};
  for (std::size_t i = 0; i < kMaxStreams; ++i) streams[i] = i;
  // Unused streams come last, and are interchangeable.
  const auto used = std::count_if(
      streams.begin(), streams.end(),
      [&](std::size_t stream) { return (used_ & Bit(stream)) != 0; });
  std::string least;
  do {
    std::array<std::size_t, kMaxStreams> names{};
    for (std::size_t i = 0; i < kMaxStreams; ++i) names[streams[i]] = i;
    std::string text = writer.Write(names, streams);
    if (least.empty() || text < least) least = std::move(text);
  } while (std::next_permutation(streams.begin(), streams.begin() + used));
  return least;
}

}  // namespace strata
