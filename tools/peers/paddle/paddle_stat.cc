#include "strata/tools/peers/paddle/paddle_stat.h"

#include <array>
#include <atomic>
#include <mutex>
#include <stdexcept>
#include <unordered_set>

namespace strata::peers {
namespace {

constexpr std::size_t kMostStats = 16;

// Only their thread writes them.
using Cells = std::array<std::atomic<std::int64_t>, kMostStats>;

// The cells of all threads.
class Registry {
 public:
  // Never destroyed: threads may end after static objects were destroyed.
  static Registry& Instance() {
    static Registry& instance = *new Registry();
    return instance;
  }

  std::size_t TakeNumber() {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (std::size_t number = 0; number < kMostStats; ++number) {
      if (is_taken_[number]) continue;
      is_taken_[number] = true;
      ended_[number] = 0;
      for (Cells* cells : threads_) (*cells)[number] = 0;
      return number;
    }
    throw std::runtime_error("peer:paddle: 16 of them exist, and no more can");
  }
  void GiveNumber(std::size_t number) {
    const std::lock_guard<std::mutex> lock(mutex_);
    is_taken_[number] = false;
  }

  void Add(Cells* cells) {
    const std::lock_guard<std::mutex> lock(mutex_);
    threads_.insert(cells);
  }
  void Remove(Cells* cells) {
    const std::lock_guard<std::mutex> lock(mutex_);
    threads_.erase(cells);
    for (std::size_t number = 0; number < kMostStats; ++number) {
      ended_[number] += (*cells)[number];
    }
  }

  std::int64_t Sum(std::size_t number) {
    const std::lock_guard<std::mutex> lock(mutex_);
    std::int64_t sum = ended_[number];
    for (const Cells* cells : threads_) sum += (*cells)[number];
    return sum;
  }

 private:
  std::mutex mutex_;
  // All below: guarded by mutex_.
  std::unordered_set<Cells*> threads_;
  std::array<std::int64_t, kMostStats> ended_{};  // counts of ended threads
  std::array<bool, kMostStats> is_taken_{};
};

class ThreadCells {
 public:
  ThreadCells() { Registry::Instance().Add(&cells); }
  ThreadCells(const ThreadCells&) = delete;
  ThreadCells& operator=(const ThreadCells&) = delete;
  ~ThreadCells() { Registry::Instance().Remove(&cells); }

  Cells cells{};
};

thread_local ThreadCells t_cells;

}  // namespace

PaddleStat::PaddleStat() : number_(Registry::Instance().TakeNumber()) {}

PaddleStat::~PaddleStat() { Registry::Instance().GiveNumber(number_); }

void PaddleStat::Update(std::int64_t bytes) {
  std::atomic<std::int64_t>& cell = t_cells.cells[number_];
  cell.store(cell.load(std::memory_order_relaxed) + bytes,
             std::memory_order_relaxed);
}

std::int64_t PaddleStat::Current() const {
  return Registry::Instance().Sum(number_);
}

}  // namespace strata::peers
