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

namespace strata::tools {

// Threads that repeatedly work at the same time.
//
// Model: the threads live as long as the team, so that an allocator's thread
//   caches persist from one measurement to the next. Thread i is bound to core
//   i modulo the number of cores; without cores it is not bound.
// Threads: one.
class BenchTeam {
 public:
  using Work = std::function<void(std::size_t thread)>;

  BenchTeam(std::size_t threads, const std::vector<int>& cores);
  BenchTeam(const BenchTeam&) = delete;
  BenchTeam& operator=(const BenchTeam&) = delete;
  ~BenchTeam();

  // Runs `work` in every thread; all begin together. Returns the wall time of
  // each thread: processor time would not include the wait for a lock.
  //
  // Errors: the exception of the first thread in which `work` throws, after all
  //   have finished.
  std::vector<std::chrono::nanoseconds> Run(const Work& work);

 private:
  void Serve(std::size_t thread);
  void WaitForAll();

  std::mutex mutex_;
  std::condition_variable changed_;
  // Guarded by mutex_, except for data of a thread while it works.
  std::uint64_t runs_ = 0;  // runs begun
  std::size_t working_ = 0;
  bool is_over_ = false;
  const Work* work_ = nullptr;
  std::vector<std::chrono::nanoseconds> times_;
  std::vector<std::exception_ptr> errors_;

  // threads about to begin, summed over all runs
  std::atomic<std::size_t> arrived_{0};
  std::vector<std::thread> threads_;
};

}  // namespace strata::tools

#endif  // STRATA_TOOLS_BENCH_TEAM_H_
