#include "strata/tools/bench/plot.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <map>
#include <optional>
#include <utility>

namespace strata::tools {
namespace {

using Threads = BenchWorkload::Threads;

// In pixels.
constexpr double kPanelWidth = 460;
constexpr double kPanelHeight = 330;
constexpr double kLeft = 60;  // margins of the axes in a panel
constexpr double kRight = 20;
constexpr double kTop = 34;
constexpr double kBottom = 48;
constexpr double kLegendWidth = 170;
constexpr double kLegendLine = 18;
constexpr std::size_t kColumns = 2;

// Colors that people with any kind of color vision can distinguish; further
// lines repeat them with dashes.
// Source: Okabe and Ito 2008.
constexpr std::array kColors = {"#000000", "#0072b2", "#d55e00", "#009e73",
                                "#cc79a7", "#e69f00", "#56b4e9", "#999933"};

struct Point {
  double x;
  double ns;
};

// The workloads of a family, which differ only in a number.
struct Panel {
  std::string family;  // their common name, without the number
  const char* axis;
  std::map<std::string, std::vector<Point>> lines;  // by allocator
};

bool HasNumber(std::size_t live_blocks, Threads threads) {
  return live_blocks != 0 || threads == Threads::kOwnStreams ||
         threads == Threads::kOneStream;
}

double NumberOf(const BenchRow& row) {
  return static_cast<double>(row.live_blocks != 0 ? row.live_blocks
                                                  : row.thread_count);
}

std::string FamilyOf(const BenchRow& row) {
  return row.workload.substr(0, row.workload.find_last_of('_'));
}

std::vector<Panel> PanelsOf(const std::vector<BenchRow>& rows) {
  std::vector<Panel> panels;
  for (const BenchRow& row : rows) {
    const std::optional<double> median = row.MedianNs();
    if (!HasNumber(row.live_blocks, row.threads)) continue;
    if (!median || *median <= 0) continue;
    const std::string family = FamilyOf(row);
    auto panel =
        std::find_if(panels.begin(), panels.end(),
                     [&](const Panel& one) { return one.family == family; });
    if (panel == panels.end()) {
      const char* axis = row.live_blocks != 0 ? "live blocks" : "threads";
      panel = panels.insert(panels.end(), Panel{family, axis, {}});
    }
    panel->lines[row.allocator].push_back({NumberOf(row), *median});
  }
  return panels;
}

// In the order of the rows.
std::vector<std::string> AllocatorsOf(const std::vector<BenchRow>& rows,
                                      const std::vector<Panel>& panels) {
  std::vector<std::string> names;
  for (const BenchRow& row : rows) {
    const bool is_drawn = std::any_of(
        panels.begin(), panels.end(),
        [&](const Panel& one) { return one.lines.count(row.allocator) != 0; });
    if (is_drawn &&
        std::find(names.begin(), names.end(), row.allocator) == names.end()) {
      names.push_back(row.allocator);
    }
  }
  return names;
}

std::string Pixels(double value) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.1f", value);
  return text.data();
}

// 100, 1k, 1M.
std::string Short(double value) {
  const char* unit = "";
  if (value >= 1e6) {
    value /= 1e6;
    unit = "M";
  } else if (value >= 1e3) {
    value /= 1e3;
    unit = "k";
  }
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%g%s", value, unit);
  return text.data();
}

// A logarithmic axis on a length of pixels.
struct Axis {
  double low;
  double high;
  double begin;
  double end;

  double At(double value) const {
    if (low == high) return (begin + end) / 2;
    return begin + (end - begin) * std::log(value / low) / std::log(high / low);
  }
};

class SvgWriter {
 public:
  SvgWriter(double width, double height) {
    svg_ = "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"";
    svg_ += Pixels(width) + "\" height=\"" + Pixels(height) +
            "\" font-family=\"sans-serif\" font-size=\"12\">\n"
            "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n";
  }

  void Line(double x1, double y1, double x2, double y2,
            const std::string& style) {
    svg_ += "<line x1=\"" + Pixels(x1) + "\" y1=\"" + Pixels(y1) + "\" x2=\"" +
            Pixels(x2) + "\" y2=\"" + Pixels(y2) + "\" " + style + "/>\n";
  }
  void Polyline(const std::vector<Point>& pixels, const std::string& style) {
    svg_ += "<polyline fill=\"none\" " + style + " points=\"";
    for (const Point& one : pixels) {
      svg_ += Pixels(one.x) + "," + Pixels(one.ns) + " ";
    }
    svg_ += "\"/>\n";
  }
  void Dot(double x, double y, const std::string& color) {
    svg_ += "<circle cx=\"" + Pixels(x) + "\" cy=\"" + Pixels(y) +
            "\" r=\"2.5\" fill=\"" + color + "\"/>\n";
  }
  // `anchor` is the part of the text at x: start, middle or end.
  void Text(double x, double y, const char* anchor, const std::string& text) {
    svg_ += "<text x=\"" + Pixels(x) + "\" y=\"" + Pixels(y) +
            "\" text-anchor=\"" + anchor + "\">" + text + "</text>\n";
  }

  std::string Finish() { return svg_ + "</svg>\n"; }

 private:
  std::string svg_;
};

// The color and dashes of each allocator's line.
class Styles {
 public:
  explicit Styles(std::vector<std::string> allocators)
      : allocators_(std::move(allocators)) {}

  const std::vector<std::string>& allocators() const { return allocators_; }
  std::string Color(const std::string& allocator) const {
    return kColors[Index(allocator) % kColors.size()];
  }
  std::string Stroke(const std::string& allocator) const {
    const bool is_dashed = Index(allocator) >= kColors.size();
    return "stroke=\"" + Color(allocator) + "\" stroke-width=\"1.5\"" +
           (is_dashed ? " stroke-dasharray=\"5 3\"" : "");
  }

 private:
  std::size_t Index(const std::string& allocator) const {
    const auto found =
        std::find(allocators_.begin(), allocators_.end(), allocator);
    return static_cast<std::size_t>(found - allocators_.begin());
  }

  std::vector<std::string> allocators_;
};

// Every distinct value of x in a panel, ascending.
std::vector<double> TicksOf(const Panel& panel) {
  std::vector<double> ticks;
  for (const auto& [allocator, points] : panel.lines) {
    for (const Point& point : points) ticks.push_back(point.x);
  }
  std::sort(ticks.begin(), ticks.end());
  ticks.erase(std::unique(ticks.begin(), ticks.end()), ticks.end());
  return ticks;
}

// From a power of ten to a power of ten.
Axis HeightAxis(const Panel& panel, double top) {
  double low = HUGE_VAL;
  double high = 0;
  for (const auto& [allocator, points] : panel.lines) {
    for (const Point& point : points) {
      low = std::min(low, point.ns);
      high = std::max(high, point.ns);
    }
  }
  low = std::pow(10, std::floor(std::log10(low)));
  high = std::max(std::pow(10, std::ceil(std::log10(high))), low * 10);
  return {low, high, top + kPanelHeight - kBottom, top + kTop};
}

void DrawGrid(SvgWriter& svg, const Panel& panel, const Axis& x,
              const Axis& y) {
  constexpr const char* kGrid = "stroke=\"#dddddd\"";
  for (double ns = y.low; ns < y.high * 1.5; ns *= 10) {
    svg.Line(x.begin, y.At(ns), x.end, y.At(ns), kGrid);
    svg.Text(x.begin - 6, y.At(ns) + 4, "end", Short(ns));
  }
  for (const double tick : TicksOf(panel)) {
    svg.Line(x.At(tick), y.begin, x.At(tick), y.end, kGrid);
    svg.Text(x.At(tick), y.begin + 16, "middle", Short(tick));
  }
  const double middle = (x.begin + x.end) / 2;
  svg.Text(middle, y.begin + 34, "middle", panel.axis);
  svg.Text(middle, y.end - 10, "middle", panel.family + ": ns a pair");
}

void DrawPanel(SvgWriter& svg, const Panel& panel, const Styles& styles,
               double left, double top) {
  const std::vector<double> ticks = TicksOf(panel);
  const Axis x = {ticks.front(), ticks.back(), left + kLeft,
                  left + kPanelWidth - kRight};
  const Axis y = HeightAxis(panel, top);
  DrawGrid(svg, panel, x, y);
  for (const auto& [allocator, points] : panel.lines) {
    std::vector<Point> sorted = points;
    std::sort(sorted.begin(), sorted.end(),
              [](const Point& a, const Point& b) { return a.x < b.x; });
    for (Point& point : sorted) point = {x.At(point.x), y.At(point.ns)};
    svg.Polyline(sorted, styles.Stroke(allocator));
    for (const Point& point : sorted) {
      svg.Dot(point.x, point.ns, styles.Color(allocator));
    }
  }
}

void DrawLegend(SvgWriter& svg, const Styles& styles, double left) {
  double y = kTop + kLegendLine;
  for (const std::string& allocator : styles.allocators()) {
    svg.Line(left, y - 4, left + 24, y - 4, styles.Stroke(allocator));
    svg.Text(left + 30, y, "start", allocator);
    y += kLegendLine;
  }
}

}  // namespace

bool IsPlotted(const BenchWorkload& workload) {
  return HasNumber(workload.live_blocks, workload.threads);
}

std::string ToSvg(const std::vector<BenchRow>& rows) {
  const std::vector<Panel> panels = PanelsOf(rows);
  const Styles styles(AllocatorsOf(rows, panels));
  const auto columns = static_cast<double>(
      std::min(std::max(panels.size(), std::size_t{1}), kColumns));
  const auto lines = static_cast<double>(
      std::max((panels.size() + kColumns - 1) / kColumns, std::size_t{1}));
  const double legend_height =
      2 * kTop + kLegendLine * static_cast<double>(styles.allocators().size());
  SvgWriter svg(columns * kPanelWidth + kLegendWidth,
                std::max(lines * kPanelHeight, legend_height));
  for (std::size_t i = 0; i < panels.size(); ++i) {
    const std::size_t line = i / kColumns;
    DrawPanel(svg, panels[i], styles,
              static_cast<double>(i % kColumns) * kPanelWidth,
              static_cast<double>(line) * kPanelHeight);
  }
  DrawLegend(svg, styles, columns * kPanelWidth);
  return svg.Finish();
}

}  // namespace strata::tools
