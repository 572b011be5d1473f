#include "strata/tools/bench/team.h"

#include "strata/tools/bench/cores.h"

namespace strata::tools {

BenchTeam::BenchTeam(std::size_t threads, const std::vector<int>& cores)
    : times_(threads) {
  errors_.resize(threads);
  for (std::size_t i = 0; i < threads; ++i) {
    const int core = cores.empty() ? -1 : cores[i % cores.size()];
    threads_.emplace_back([this, i, core] {
      if (core >= 0) PinThread(core);
      Serve(i);
    });
  }
}

BenchTeam::~BenchTeam() {
  {
    const std::lock_guard<std::mutex> guard(mutex_);
    is_over_ = true;
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

std::vector<std::chrono::nanoseconds> BenchTeam::Run(const Work& work) {
  std::unique_lock<std::mutex> lock(mutex_);
  work_ = &work;
  working_ = threads_.size();
  ++runs_;
  changed_.notify_all();
  changed_.wait(lock, [this] { return working_ == 0; });
  for (std::exception_ptr& error : errors_) {
    if (error == nullptr) continue;
    const std::exception_ptr first = error;
    errors_.assign(errors_.size(), nullptr);
    std::rethrow_exception(first);
  }
  return times_;
}

// Waking takes longer than some measurements. So the threads wait actively;
// they yield, because there may be fewer cores than threads.
void BenchTeam::WaitForAll() {
  const std::size_t size = times_.size();
  const std::size_t mine = arrived_.fetch_add(1) + 1;
  const std::size_t all = (mine + size - 1) / size * size;
  while (arrived_.load() < all) std::this_thread::yield();
}

void BenchTeam::Serve(std::size_t thread) {
  std::uint64_t served = 0;
  std::unique_lock<std::mutex> lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return is_over_ || runs_ != served; });
    if (is_over_) return;
    served = runs_;
    const Work& work = *work_;
    lock.unlock();
    WaitForAll();
    const auto start = std::chrono::steady_clock::now();
    std::exception_ptr error;
    try {
      work(thread);
    } catch (...) {
      error = std::current_exception();
    }
    const auto time = std::chrono::steady_clock::now() - start;
    lock.lock();
    times_[thread] = time;
    errors_[thread] = error;
    if (--working_ == 0) changed_.notify_all();
  }
}

}  // namespace strata::tools
