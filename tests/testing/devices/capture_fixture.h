#ifndef STRATA_TESTS_TESTING_DEVICES_CAPTURE_FIXTURE_H_
#define STRATA_TESTS_TESTING_DEVICES_CAPTURE_FIXTURE_H_

#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <iosfwd>
#include <vector>

#include "strata/tests/testing/devices/device_fixture.h"
#include "strata/tests/testing/devices/thread_capture_mode.h"

namespace strata {

inline constexpr std::array<CaptureMode, 3> kCaptureModes = {
    CaptureMode::kGlobal, CaptureMode::kThreadLocal, CaptureMode::kRelaxed};

const char* NameOf(CaptureMode mode);
// Prints the name of the status in a failed expectation.
void PrintTo(CaptureStatus status, std::ostream* out);

// A test of captures and graphs of device 0. Skips on devices without them.
//
// Model: the test's own thread begins and ends the captures. A call of another
//   thread runs in a temporary thread, which is joined at once.
class CaptureFixture : public DeviceTest {
 protected:
  void SetUp() override;
  // Ends the captures that a failed test left open.
  void TearDown() override;

  void Begin(const Stream& stream, CaptureMode mode = CaptureMode::kGlobal);
  // The graph lives until the test ends.
  Graph End(const Stream& stream);
  // Ends the capture and expects `status`. Expects no graph, and that the
  // stream is usable afterwards.
  void ExpectEnd(const Stream& stream, Status status);
  // Ends the capture, whatever its state, and destroys its graph.
  Status Abandon(const Stream& stream);
  // Begin, `body`, End.
  Graph Capture(const Stream& stream, const std::function<void()>& body);

  CaptureStatus StatusOf(const Stream& stream);
  CaptureInfo InfoOf(const Stream& stream);
  // The only node that the stream's next node depends on.
  GraphNode LastNode(const Stream& stream);
  // Expects that `node` depends on exactly `nodes`, in any order.
  void ExpectPredecessors(GraphNode node, std::vector<GraphNode> nodes);

  // The graph and the executable graph live until the test ends.
  Graph NewGraph();
  GraphExec NewExec(Graph graph, unsigned flags = 0);
  void Launch(GraphExec exec, const Stream& stream);
  // Launches in a new stream, and waits.
  void Replay(GraphExec exec, int times = 1);

  // Orders all later work of `after` behind the work submitted to `before`.
  void Order(const Stream& before, const Stream& after, Event event);
  void Copy(DevicePtr target, DevicePtr source, const Stream& stream);
  // Copies the first bytes of memory to page-locked memory.
  void Copy(std::uint64_t* target, DevicePtr source, const Stream& stream);
  // Counts, on the host, how often the stream reaches this point. The counter
  // lives until the test ends.
  std::atomic<int>* NewCounter() { return &counters_.emplace_back(0); }
  void Count(const Stream& stream, std::atomic<int>* counter);

  // Calls `function` in another thread, and waits for it.
  static void Elsewhere(const std::function<void()>& function);

 private:
  std::vector<Stream> begun_;
  std::deque<std::atomic<int>> counters_;
};

}  // namespace strata

#endif  // STRATA_TESTS_TESTING_DEVICES_CAPTURE_FIXTURE_H_
