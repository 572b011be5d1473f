#ifndef STRATA_TESTS_TESTING_CAPTURE_FIXTURE_H_
#define STRATA_TESTS_TESTING_CAPTURE_FIXTURE_H_

#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <iosfwd>
#include <vector>

#include "strata/tests/testing/device_fixture.h"
#include "strata/tests/testing/thread_capture_mode.h"

namespace strata {

inline constexpr std::array<CaptureMode, 3> kCaptureModes = {
    CaptureMode::kGlobal, CaptureMode::kThreadLocal, CaptureMode::kRelaxed};

const char* NameOf(CaptureMode mode);
// Lets a failed expectation name the status.
void PrintTo(CaptureStatus status, std::ostream* out);

// A test of captures and graphs of device 0; skips where there are none.
//
// Model: captures are begun and ended by the test's own thread; what another
//   thread does meanwhile, a thread does that is joined at once.
class CaptureFixture : public DeviceTest {
 protected:
  void SetUp() override;
  // Ends the captures that a failed test has left.
  void TearDown() override;

  void Begin(const Stream& stream, CaptureMode mode = CaptureMode::kGlobal);
  // The graph lives until the test ends.
  Graph End(const Stream& stream);
  // The capture comes to its end with `status`: without a graph, and leaving
  // the stream as any other.
  void ExpectEnd(const Stream& stream, Status status);
  // Ends the capture, whatever has become of it, and its graph.
  Status Abandon(const Stream& stream);
  // As Begin, `body`, End.
  Graph Capture(const Stream& stream, const std::function<void()>& body);

  CaptureStatus StatusOf(const Stream& stream);
  CaptureInfo InfoOf(const Stream& stream);
  // The one node that the stream's next one depends on.
  GraphNode LastNode(const Stream& stream);
  // What `node` depends on is `nodes`, in any order.
  void ExpectPredecessors(GraphNode node, std::vector<GraphNode> nodes);

  // Both live until the test ends.
  Graph NewGraph();
  GraphExec NewExec(Graph graph, unsigned flags = 0);
  void Launch(GraphExec exec, const Stream& stream);
  // Launches and waits, in a stream of its own.
  void Replay(GraphExec exec, int times = 1);

  // What is in `after` from now on comes behind what is in `before`.
  void Order(const Stream& before, const Stream& after, Event event);
  void Copy(DevicePtr target, DevicePtr source, const Stream& stream);
  // A copy of the first bytes of memory into page-locked memory.
  void Copy(std::uint64_t* target, DevicePtr source, const Stream& stream);
  // Counts, on the host, how often the stream gets here. The counter lives as
  // long as the test.
  std::atomic<int>* NewCounter() { return &counters_.emplace_back(0); }
  void Count(const Stream& stream, std::atomic<int>* counter);

  // Calls `function` in another thread, and waits for it.
  static void Elsewhere(const std::function<void()>& function);

 private:
  std::vector<Stream> begun_;
  std::deque<std::atomic<int>> counters_;
};

}  // namespace strata

#endif  // STRATA_TESTS_TESTING_CAPTURE_FIXTURE_H_
