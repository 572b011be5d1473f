#include "strata/facade/graphs/graph_pools.h"

#include <algorithm>
#include <new>
#include <stdexcept>
#include <string>

#include "strata/allocation/block_flags.h"

namespace strata {
namespace {

// The first assigned id. Ids chosen by callers are smaller.
constexpr GraphPoolId kFirstOwnId = GraphPoolId{1} << 32;

GraphPoolId NewId() {
  static std::atomic<GraphPoolId> next{kFirstOwnId};
  return next++;
}

std::invalid_argument NoSuchPool(GraphPoolId id) {
  return std::invalid_argument("there is no graph pool " + std::to_string(id));
}

}  // namespace

// The reference of a graph to its pool.
struct GraphPools::Ticket {
  std::shared_ptr<GraphPool> pool;
  Ticket* next = nullptr;
};

std::atomic<GraphPools::Ticket*>& GraphPools::GoneGraphs() {
  // One list per process, as a graph may end after its facade.
  static std::atomic<Ticket*> tickets{nullptr};
  return tickets;
}

// Runs in a thread of the driver. It must neither call the driver nor wait
// (cuda_semantics.md C29).
void GraphPools::OnGraphGone(void* argument) {
  auto* ticket = static_cast<Ticket*>(argument);
  std::atomic<Ticket*>& gone = GoneGraphs();
  Ticket* first = gone.load(std::memory_order_relaxed);
  do {
    ticket->next = first;
  } while (
      !gone.compare_exchange_weak(first, ticket, std::memory_order_acq_rel));
}

GraphPools::GraphPools(std::shared_ptr<TimelineTable> timelines)
    : timelines_(std::move(timelines)),
      has_graphs_(std::make_unique<std::atomic<bool>[]>(
          static_cast<std::size_t>(timelines_->platform()->device_count()))) {}

GraphPoolId GraphPools::Prepare(GraphPoolId id) {
  Sweep();
  const std::lock_guard<std::mutex> guard(mutex_);
  if (id <= 0) {
    // A caller may have chosen such a number all the same.
    do {
      id = NewId();
    } while (pools_.count(id) != 0);
  }
  Entry& entry = pools_[id];
  if (entry.pool == nullptr) {
    try {
      entry.pool = GraphPool::Make(id, timelines_);
    } catch (...) {
      pools_.erase(id);
      throw;
    }
  }
  ++entry.references;
  return id;
}

void GraphPools::Remove(GraphPoolId id) {
  Get(id);
  Release(id);
}

void GraphPools::Release(GraphPoolId id) noexcept {
  std::shared_ptr<GraphPool> last;
  {
    const std::lock_guard<std::mutex> guard(mutex_);
    const auto found = pools_.find(id);
    if (found == pools_.end()) return;
    if (--found->second.references == 0) {
      last = std::move(found->second.pool);
      pools_.erase(found);
    }
  }
  // No user is left to announce the end of its capture. By now another pool may
  // have the number.
  if (last != nullptr) {
    WithdrawIf([&](const Announced& other) { return other.pool == last; });
    // From here on only graphs hold the pool.
    last->CountAsUnused(unused_);
  }
  last.reset();
  Sweep();
}

std::shared_ptr<GraphPool> GraphPools::Get(GraphPoolId id) const {
  const std::lock_guard<std::mutex> guard(mutex_);
  const auto found = pools_.find(id);
  if (found == pools_.end()) throw NoSuchPool(id);
  return found->second.pool;
}

std::uint64_t GraphPools::Announce(GraphPoolId id, const Stream& stream) {
  // So that the end of the stream can be detected.
  static_cast<void>(timelines_->Of(stream));
  // Events of a capturing stream cannot be queried.
  timelines_->Settle();
  // Without the lock: objects that are ending may need it.
  CaptureGate& gate = timelines_->gate();
  gate.Announce();
  try {
    // Again, for memory that was freed before all threads saw the announcement.
    timelines_->Settle();
    return Enter(id, stream);
  } catch (...) {
    gate.Withdraw();
    throw;
  }
}

std::uint64_t GraphPools::Enter(GraphPoolId id, const Stream& stream) {
  const std::lock_guard<std::mutex> guard(mutex_);
  const auto found = pools_.find(id);
  if (found == pools_.end()) throw NoSuchPool(id);
  for (const Announced& other : announced_) {
    if (other.pool == found->second.pool) {
      throw std::logic_error("graph pool " + std::to_string(id) +
                             " has a capture already: captures that share a "
                             "pool come one after another");
    }
    if (stream.uid != 0 && other.stream == stream) {
      throw std::logic_error("a capture of stream " +
                             std::to_string(stream.uid) +
                             " was announced already");
    }
  }
  announced_.push_back({.stream = stream,
                        .pool = found->second.pool,
                        .number = announcements_ + 1});
  return ++announcements_;
}

template <class Predicate>
bool GraphPools::WithdrawIf(Predicate is_meant) noexcept {
  std::shared_ptr<GraphPool> pool;
  {
    const std::lock_guard<std::mutex> guard(mutex_);
    const auto found =
        std::find_if(announced_.begin(), announced_.end(), is_meant);
    if (found == announced_.end()) return false;
    pool = std::move(found->pool);
    announced_.erase(found);
  }
  pool->CaptureEnded();
  timelines_->gate().Withdraw();
  return true;
}

void GraphPools::Withdraw(std::uint64_t announcement) noexcept {
  if (WithdrawIf([announcement](const Announced& other) {
        return other.number == announcement;
      })) {
    Sweep();
  }
}

void GraphPools::CaptureEnded(GraphPoolId id) {
  const std::shared_ptr<GraphPool> pool = Get(id);
  Announced seen;
  {
    const std::lock_guard<std::mutex> guard(mutex_);
    for (const Announced& other : announced_) {
      if (other.pool == pool) seen = other;
    }
  }
  if (seen.number == 0) return;
  CaptureStatus status = CaptureStatus::kNone;
  Status answer = Status::kSuccess;
  timelines_->WhileThere(seen.stream, [&](Device& on) {
    answer = on.StreamIsCapturing(seen.stream, &status);
  });
  if (answer == Status::kSuccess && status != CaptureStatus::kActive) {
    Withdraw(seen.number);
  }
}

Status GraphPools::Retain(GraphPoolId id, Device& device, Graph graph) {
  auto ticket = std::make_unique<Ticket>();
  ticket->pool = Get(id);
  // The undo of this call ends captures of a thread that is not relaxed.
  const CaptureGate::RelaxedScope relaxed(gate(), &device);
  if (!relaxed) return Status::kNotReady;
  UserObject object;
  Status status =
      device.UserObjectCreate(&object, ticket.get(), &GraphPools::OnGraphGone);
  if (status != Status::kSuccess) return status;
  has_graphs_[static_cast<std::size_t>(device.ordinal())] = true;
  static_cast<void>(ticket.release());  // the object owns it
  status = device.GraphRetainUserObject(graph, object, /*move=*/true);
  if (status != Status::kSuccess) device.UserObjectRelease(object);
  return status;
}

std::shared_ptr<GraphPool> GraphPools::PoolOf(const Stream& stream,
                                              std::uint64_t capture) {
  std::vector<Stream> origins;
  {
    const std::lock_guard<std::mutex> guard(mutex_);
    for (Announced& other : announced_) {
      if (other.capture == capture) return PoolWith(other, stream);
      if (other.capture == 0 && other.stream.uid != 0) {
        origins.push_back(other.stream);
      }
    }
  }
  // The id of a capture is unknown before it begins.
  Stream origin;
  for (const Stream& candidate : origins) {
    bool is_origin = candidate == stream;
    if (!is_origin) {
      timelines_->WhileThere(candidate, [&](Device& on) {
        CaptureInfo info;
        is_origin =
            on.StreamCaptureInfo(candidate, &info) == Status::kSuccess &&
            info.status == CaptureStatus::kActive && info.id == capture;
      });
    }
    if (!is_origin) continue;
    origin = candidate;
    break;
  }
  const std::lock_guard<std::mutex> guard(mutex_);
  for (Announced& other : announced_) {
    if (other.capture == capture) return PoolWith(other, stream);
    if (other.capture != 0 || !(other.stream == origin)) continue;
    other.capture = capture;
    return PoolWith(other, stream);
  }
  return nullptr;
}

const std::shared_ptr<GraphPool>& GraphPools::PoolWith(Announced& announced,
                                                       const Stream& stream) {
  if (announced.stream.uid == 0) {
    announced.stream = stream;
    announced.is_learned = true;
  }
  return announced.pool;
}

void GraphPools::ForgetStream(const Announced& seen) noexcept {
  const std::lock_guard<std::mutex> guard(mutex_);
  for (Announced& other : announced_) {
    if (other.number != seen.number || !(other.stream == seen.stream)) continue;
    other.stream = Stream();
    other.is_learned = false;
  }
}

bool GraphPools::CloseEnded(Device& device) noexcept {
  std::vector<Announced> known;
  try {
    const std::lock_guard<std::mutex> guard(mutex_);
    for (const Announced& other : announced_) {
      if (other.stream.uid != 0 && other.stream.device == device.ordinal()) {
        known.push_back(other);
      }
    }
  } catch (const std::bad_alloc&) {
    return false;  // the next request checks again
  }
  bool is_any_over = false;
  for (const Announced& seen : known) {
    bool is_there = false;
    if (!IsOver(seen, &is_there)) continue;
    if (!is_there && seen.is_learned) {
      ForgetStream(seen);
      continue;
    }
    is_any_over |= WithdrawIf([&](const Announced& other) {
      return other.number == seen.number && other.capture == seen.capture;
    });
  }
  return is_any_over;
}

bool GraphPools::IsOver(const Announced& seen, bool* is_there) const noexcept {
  // A capture ends with its stream, even if it never began.
  bool is_over = true;
  *is_there = timelines_->WhileThere(seen.stream, [&](Device& on) {
    CaptureStatus status = CaptureStatus::kActive;
    is_over = seen.capture != 0 &&
              on.StreamIsCapturing(seen.stream, &status) == Status::kSuccess &&
              status == CaptureStatus::kNone;
  });
  return is_over;
}

std::shared_ptr<GraphPool> GraphPools::Route(Device& device,
                                             const Stream& stream,
                                             Failure& failure,
                                             bool may_be_gone) noexcept {
  failure.reason = Failure::Reason::kNone;
  if (!device.caps().capture) return nullptr;
  const auto refuse = [&](Failure::Reason reason, Status status,
                          const char* detail) {
    failure = {.reason = reason,
               .place = {},
               .status = status,
               .layer = "graph_pools",
               .detail = detail};
    return nullptr;
  };
  CaptureInfo info;
  Status status = Status::kSuccess;
  if (!may_be_gone) {
    status = device.StreamCaptureInfo(stream, &info);
  } else if (!timelines_->WhileThere(stream, [&](Device& on) {
               status = on.StreamCaptureInfo(stream, &info);
             })) {
    return nullptr;
  }
  // The legacy stream takes part in no capture (cuda_semantics.md C12).
  if (status == Status::kStreamCaptureImplicit) return nullptr;
  if (status != Status::kSuccess) {
    return refuse(Failure::Reason::kDevice, status,
                  "cannot ask whether the stream is capturing");
  }
  if (info.status == CaptureStatus::kInvalidated) {
    return refuse(Failure::Reason::kDevice, Status::kStreamCaptureInvalidated,
                  "the capture of the stream has failed; end it first");
  }
  if (info.status == CaptureStatus::kNone) {
    if (CloseEnded(device)) Sweep();
    return nullptr;
  }
  try {
    // For the first capture of a stream without an announcement: so that the
    // end of the stream can be detected later.
    if (!may_be_gone) static_cast<void>(timelines_->Of(stream));
    std::shared_ptr<GraphPool> pool = PoolOf(stream, info.id);
    if (pool != nullptr) return pool;
  } catch (const std::bad_alloc&) {
    return refuse(Failure::Reason::kHostMemory, Status::kSuccess,
                  "no memory to find the capture's pool");
  }
  return refuse(Failure::Reason::kDevice, Status::kNotPermitted,
                "the capture of the stream was not announced: call "
                "CaptureGuard or PrepareMemoryPoolForCUDAGraph before it "
                "begins (in C, strata_capture_begin)");
}

Allocation* GraphPools::TryAllocate(const std::shared_ptr<PlaceState>& place,
                                    const Stream& stream,
                                    const Request& request, Failure& failure,
                                    bool* is_captured) noexcept {
  const std::shared_ptr<GraphPool> pool =
      Route(*place->device(), stream, failure);
  *is_captured = pool != nullptr || failure.reason != Failure::Reason::kNone;
  if (pool == nullptr) {
    failure.place = place->place();
    failure.requested_bytes = request.bytes;
    return nullptr;
  }
  try {
    Front& front = pool->FrontOf(place, stream);
    Allocation* allocation = front.TryAllocate(request, failure);
    if (allocation == nullptr) return nullptr;
    allocation->block()->owner = &front;
    AddFlag(*allocation->block(), kBlockRouted);
    return allocation;
  } catch (const std::bad_alloc&) {
    failure = {.reason = Failure::Reason::kHostMemory,
               .place = place->place(),
               .layer = "graph_pool",
               .requested_bytes = request.bytes};
    return nullptr;
  }
}

void GraphPools::AddHoldsOf(Device& device, const Stream& stream,
                            std::uint64_t own,
                            std::vector<std::shared_ptr<CaptureHold>>& holds,
                            bool may_be_gone) {
  if (!gate().any()) return;
  Failure failure;
  if (std::shared_ptr<GraphPool> pool =
          Route(device, stream, failure, may_be_gone)) {
    if (pool->order() != own) holds.push_back(std::move(pool));
    return;
  }
  // A failed capture leaves no graph. If the capture is unknown, every
  // announced pool may be its pool.
  if (failure.reason == Failure::Reason::kNone ||
      failure.status == Status::kStreamCaptureInvalidated) {
    return;
  }
  const std::lock_guard<std::mutex> guard(mutex_);
  for (const Announced& other : announced_) {
    if (other.pool->order() != own) holds.push_back(other.pool);
  }
}

void GraphPools::Sweep() noexcept {
  CaptureGate& gate = timelines_->gate();
  if (gate.any()) return;
  Ticket* ticket = GoneGraphs().exchange(nullptr, std::memory_order_acq_rel);
  while (ticket != nullptr) {
    const std::unique_ptr<Ticket> gone(ticket);
    ticket = gone->next;
  }
  gate.EndPostponed();
}

void GraphPools::ForEachGraphDevice(
    FunctionRef<void(Device&)> ask) const noexcept {
  Platform& platform = *timelines_->platform();
  for (int i = 0; i < platform.device_count(); ++i) {
    if (has_graphs_[static_cast<std::size_t>(i)]) ask(platform.device(i));
  }
}

bool GraphPools::AskAndSweep() noexcept {
  if (unused_->load() != 0 && !gate().any()) {
    ForEachGraphDevice([](Device& device) {
      std::size_t free_bytes = 0;
      std::size_t total_bytes = 0;
      static_cast<void>(device.MemGetInfo(&free_bytes, &total_bytes));
    });
  }
  Sweep();
  return unused_->load() != 0;
}

bool GraphPools::EndUnused(bool waits) noexcept {
  // No capture begins in this scope.
  const CaptureGate::Calm calm(gate());
  const std::size_t unused = unused_->load();
  const std::size_t postponed = gate().postponed();
  const bool has_gone = GoneGraphs().load(std::memory_order_acquire) != nullptr;
  if (!calm || (waits ? unused == 0 : unused + postponed == 0 && !has_gone)) {
    return false;
  }
  if (waits) {
    // If a wait fails, the launches still hold their pools.
    ForEachGraphDevice([](Device& device) { (void)device.Synchronize(); });
  }
  AskAndSweep();
  // Some pools may have to remain.
  return has_gone || unused_->load() < unused || gate().postponed() < postponed;
}

void GraphPools::Close() noexcept {
  for (;;) {
    std::uint64_t last = 0;
    {
      const std::lock_guard<std::mutex> guard(mutex_);
      if (announced_.empty()) break;
      last = announced_.back().number;
    }
    Withdraw(last);
  }
  std::map<GraphPoolId, Entry> pools;
  {
    const std::lock_guard<std::mutex> guard(mutex_);
    pools.swap(pools_);
  }
  pools.clear();
  timelines_->gate().Close();
  Sweep();
}

}  // namespace strata
