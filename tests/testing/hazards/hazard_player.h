#ifndef STRATA_TESTS_TESTING_HAZARDS_HAZARD_PLAYER_H_
#define STRATA_TESTS_TESTING_HAZARDS_HAZARD_PLAYER_H_

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "strata/platform/calls/call_record.h"
#include "strata/platform/device.h"
#include "strata/platform/device_work.h"
#include "strata/platform/platform.h"

namespace strata {

// Makes the calls of a program (hazard_program.h) on device 0 of a platform,
// one after the other, each in its own thread.
//
// Model: handles and addresses of a record are translated to those of the
//   device. A query that returned "not ready" is skipped. A query that returned
//   "done" becomes a wait, because the device may be slower.
class HazardPlayer {
 public:
  explicit HazardPlayer(Platform& platform);
  ~HazardPlayer();

  void Play(const std::vector<CallRecord>& program);

 private:
  // A thread that runs one function at a time.
  class Worker {
   public:
    Worker();
    ~Worker();
    // Returns when the function has returned.
    void Do(const std::function<void()>& what);

   private:
    void Run();

    std::mutex mutex_;
    std::condition_variable changed_;
    const std::function<void()>* what_ = nullptr;  // guarded by mutex_
    bool ends_ = false;                            // guarded by mutex_
    std::thread thread_;
  };
  struct Range {
    std::uint64_t bytes = 0;
    DevicePtr real = 0;
  };

  void Make(const CallRecord& call);
  void MakeMemory(const CallRecord& call);
  void MakeGraph(const CallRecord& call);
  Stream StreamOf(std::uint64_t uid) const;
  DevicePtr Real(std::uint64_t ptr) const;

  Device& device_;
  DeviceWork& work_;
  MemPool pool_;
  std::map<std::uint64_t, std::unique_ptr<Worker>> workers_;
  std::map<std::uint64_t, Stream> streams_;
  std::map<std::uint64_t, Event> events_;
  std::map<std::uint64_t, Range> ranges_;  // by address in the program
  std::map<std::uint64_t, MemHandle> memory_;
  std::map<std::uint64_t, Graph> graphs_;
  std::map<std::uint64_t, GraphExec> execs_;
};

}  // namespace strata

#endif  // STRATA_TESTS_TESTING_HAZARDS_HAZARD_PLAYER_H_
