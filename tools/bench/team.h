#ifndef STRATA_TOOLS_BENCH_TEAM_H_
#define STRATA_TOOLS_BENCH_TEAM_H_

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace strata {

// Threads that work at the same time, again and again.
//
// Model: they live as long as the team, so that what allocators keep for a
//   thread lasts from one measurement to the next. Thread i is kept on core
//   i modulo their number; without cores, on none.
// Threads: one.
class BenchTeam {
 public:
  using Work = std::function<void(std::size_t thread)>;

  BenchTeam(std::size_t threads, const std::vector<int>& cores);
  BenchTeam(const BenchTeam&) = delete;
  BenchTeam& operator=(const BenchTeam&) = delete;
  ~BenchTeam();

  // Has every thread do `work`, all beginning together; returns how long each
  // took, on the clock on the wall: processor time would not see a thread that
  // sleeps until it gets a lock.
  //
  // Errors: what `work` throws in the first of the threads for which it does,
  //   when all are done.
  std::vector<std::chrono::nanoseconds> Run(const Work& work);

 private:
  void Serve(std::size_t thread);
  void WaitForAll();

  std::mutex mutex_;
  std::condition_variable changed_;
  // Guarded by mutex_, but what is a thread's own while it works.
  std::uint64_t runs_ = 0;  // begun
  std::size_t working_ = 0;
  bool is_over_ = false;
  const Work* work_ = nullptr;
  std::vector<std::chrono::nanoseconds> times_;
  std::vector<std::exception_ptr> errors_;

  std::atomic<std::size_t> arrived_{0};  // threads about to begin, in all runs
  std::vector<std::thread> threads_;
};

}  // namespace strata

#endif  // STRATA_TOOLS_BENCH_TEAM_H_
