#ifndef STRATA_TOOLS_PEERS_PADDLE_PADDLE_STAT_H_
#define STRATA_TOOLS_PEERS_PADDLE_PADDLE_STAT_H_

#include <cstddef>
#include <cstdint>

namespace strata::peers {

// A number of bytes that every thread counts in a separate cell.
//
// Model: a cell per thread for each of up to 16 numbers; the original has them
//   for 16 devices. Unlike in the original, the counts of a thread remain when
//   it ends; peaks are not stored.
// Errors: std::runtime_error from the constructor, if 16 exist.
// Threads: any thread.
// Source: paddle.md §3.13.
class PaddleStat {
 public:
  PaddleStat();
  PaddleStat(const PaddleStat&) = delete;
  PaddleStat& operator=(const PaddleStat&) = delete;
  // No thread may count any more.
  virtual ~PaddleStat();

  // Virtual, because the original dispatches by device.
  virtual void Update(std::int64_t bytes);
  // The sum over all threads.
  std::int64_t Current() const;

 private:
  const std::size_t number_;
};

}  // namespace strata::peers

#endif  // STRATA_TOOLS_PEERS_PADDLE_PADDLE_STAT_H_
