// PowerSGD: of every matrix's gradient the best r directions that one step of power iteration finds, with error
// feedback. Tensors as matrices of m rows, the first dimension, and n columns.
//   r_i ← r_i + g_i = M_i;  A ← orthogonalised (1/P) Σ_i M_i B;  B ← (1/P) Σ_i M_iᵀ A;  g ← A Bᵀ;  r_i ← M_i − g
//   vectors, small matrices, and everything in the first iterations: g ← (1/P) Σ_i M_i;  r_i ← 0
// A and B, P and Q in the paper, have r columns. B is kept from one iteration to the next (warm start). Only sums
// travel, no positions: a ring adds A and then B. With r = min(m, n) it is the dense mean, to rounding.
// vogels2019powersgd, Algorithms 1 and 2; dense iterations at first and the rule which matrices are small are those of
// PyTorch's communication hook.
// Deviates from the paper in: A is orthogonalised by Householder reflections, which also take columns that depend on
// each other, and not by Gram-Schmidt; momentum is the optimizer's; what is not compressed travels with A.
// Cost per rank and iteration: 4 (P − 1) messages, 8 (P − 1)/P · (Σ r (m + n) + what is dense) bytes; memory: a block
// of residuals, A and B; time: 6 r floating-point operations a value.
#include <algorithm>
#include <vector>

#include <Eigen/Core>
#include <Eigen/QR>

#include "base/random.hpp"
#include "runtime/collectives/ring.hpp"
#include "runtime/exchange/collective_plan.hpp"
#include "runtime/exchange/global/parts/global.hpp"

namespace hearsay {
namespace {

using Matrix = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using MatrixView = Eigen::Map<Matrix>;

struct PowerSgdSettings {
  std::size_t rank = 1;  // r
  Iteration dense_iterations = 0;
  double least_saving = 2.0;
  bool warm_start = true, error_feedback = true;
  std::uint64_t seed = 0;
};

/// How a segment travels.
struct Shape {
  std::size_t rows = 0, columns = 0;
  std::size_t rank = 0;  ///< 0: dense

  /// Floats that travel before A is orthogonal, and after.
  std::size_t first() const { return rank == 0 ? rows * columns : rank * rows; }
  std::size_t second() const { return rank * columns; }
};

Shape shape_of(const Segment& segment, const PowerSgdSettings& settings) {
  Shape shape{.rows = segment.length, .columns = 1};
  if (segment.shape.size() < 2 || segment.length == 0) return shape;
  shape.rows = static_cast<std::size_t>(segment.shape.front());
  shape.columns = segment.length / shape.rows;
  const std::size_t rank = std::min({settings.rank, shape.rows, shape.columns});
  const double travels = settings.least_saving * static_cast<double>(rank * (shape.rows + shape.columns));
  if (travels < static_cast<double>(segment.length)) shape.rank = rank;
  return shape;
}

/// What a model's segments are, and the floats that they make together.
struct Shapes {
  Shapes(const Layout& layout, const PowerSgdSettings& settings) {
    for (const Segment& segment : layout.segments()) {
      of_segment.push_back(shape_of(segment, settings));
      first += of_segment.back().first();
      second += of_segment.back().second();
    }
  }
  std::vector<Shape> of_segment;
  std::size_t first = 0, second = 0;
};

class PowerSgd final : public Exchange, public Residual {
 public:
  PowerSgd(const ExchangeContext& context, const PowerSgdSettings& settings)
      : context_(context),
        settings_(settings),
        shapes_(context.replica.layout, settings),
        residual_(context.replica.layout.size()),
        left_(shapes_.first),
        right_(shapes_.second) {
    draw(0);
  }

  void start(Iteration) override {
    for (SegmentId s = 0; s < context_.replica.layout.count(); ++s) context_.ledger.event(s);
  }
  void finish(Iteration k) override {
    const auto g = context_.replica.gradients.span(), m = residual_.span();
    require_finite_gradients(context_.replica.layout, 0, g);
    {
      const PhaseTimer timer(context_.ledger, Phase::encode);
      for (std::size_t i = 0; i < g.size(); ++i) m[i] += g[i];
    }
    if (k < settings_.dense_iterations || shapes_.second == 0)
      dense(m, g);
    else
      compressed(k, m, g);
    require_finite_sum(context_.replica.layout, 0, g);
    if (!settings_.error_feedback) std::ranges::fill(m, 0.0F);
  }
  Capabilities capabilities() override { return {.residual = this}; }
  void add_residual(std::span<float> block) const override {
    for (std::size_t i = 0; i < block.size(); ++i) block[i] += residual_.span()[i];
  }
  void take_residual(std::span<const float> sum) override {
    const Part own = part_of(sum.size(), context_.peers.size(), context_.peers.rank());
    for (std::size_t i = 0; i < own.length; ++i) own.of(residual_.span())[i] += own.of(sum)[i];
  }
  void state(Archive& archive) override {
    archive.values("residual", residual_.span());
    archive.values("right factors", right_.span());
  }

 private:
  /// The same on every rank. Columns must not depend on each other: they do not, almost surely.
  void draw(Iteration k) {
    Random random(stream_seed(settings_.seed, "powersgd", static_cast<std::uint64_t>(k)));
    for (float& value : right_.span()) value = static_cast<float>(random.normal());
  }
  /// values ← their mean over ranks.
  void average(std::span<float> values) {
    run_collective(context_, [&] { ring_all_reduce(Group(context_.peers), values); });
    const auto ranks = static_cast<float>(context_.peers.size());
    for (float& value : values) value /= ranks;
  }
  void dense(std::span<float> m, std::span<float> g) {
    std::ranges::copy(m, g.begin());
    average(g);
    std::ranges::fill(m, 0.0F);
  }
  void compressed(Iteration k, std::span<float> m, std::span<float> g) {
    if (!settings_.warm_start) draw(k);
    for_each([&](const Segment& segment, const Shape& shape, std::span<float> a, std::span<float> b) {
      if (shape.rank == 0)
        std::ranges::copy(m.subspan(segment.offset, segment.length), a.begin());
      else
        left(a, shape).noalias() = matrix(m, segment, shape) * right(b, shape);
    });
    average(left_.span());
    for_each([&](const Segment& segment, const Shape& shape, std::span<float> a, std::span<float> b) {
      if (shape.rank == 0) return;
      orthogonalise(left(a, shape));
      right(b, shape).noalias() = matrix(m, segment, shape).transpose() * left(a, shape);
    });
    average(right_.span());
    for_each([&](const Segment& segment, const Shape& shape, std::span<float> a, std::span<float> b) {
      if (shape.rank == 0)
        std::ranges::copy(a, g.begin() + static_cast<std::ptrdiff_t>(segment.offset));
      else
        matrix(g, segment, shape).noalias() = left(a, shape) * right(b, shape).transpose();
      const auto rest = m.subspan(segment.offset, segment.length), applied = g.subspan(segment.offset, segment.length);
      for (std::size_t i = 0; i < rest.size(); ++i) rest[i] = shape.rank == 0 ? 0.0F : rest[i] - applied[i];
    });
  }

  /// `work(segment, shape, its values of left_, its values of right_)`.
  template <class Work>
  void for_each(const Work& work) {
    const PhaseTimer timer(context_.ledger, Phase::encode);
    std::size_t first = 0, second = 0;
    for (std::size_t s = 0; s < shapes_.of_segment.size(); ++s) {
      const Shape& shape = shapes_.of_segment[s];
      work(context_.replica.layout[static_cast<SegmentId>(s)], shape, left_.span().subspan(first, shape.first()),
           right_.span().subspan(second, shape.second()));
      first += shape.first();
      second += shape.second();
    }
  }
  static MatrixView view(float* values, std::size_t rows, std::size_t columns) {
    return {values, static_cast<Eigen::Index>(rows), static_cast<Eigen::Index>(columns)};
  }
  static MatrixView matrix(std::span<float> block, const Segment& segment, const Shape& shape) {
    return view(block.data() + segment.offset, shape.rows, shape.columns);
  }
  static MatrixView left(std::span<float> a, const Shape& shape) { return view(a.data(), shape.rows, shape.rank); }
  static MatrixView right(std::span<float> b, const Shape& shape) { return view(b.data(), shape.columns, shape.rank); }
  /// Columns of length 1 at right angles that span what they spanned before; where they depended on each other, more.
  static void orthogonalise(MatrixView a) {
    const Matrix thin = Eigen::HouseholderQR<Matrix>(a).householderQ() * Matrix::Identity(a.rows(), a.cols());
    a = thin;
  }

  ExchangeContext context_;
  PowerSgdSettings settings_;
  Shapes shapes_;
  FloatBlock residual_;      // r_i, and M_i within `finish`
  FloatBlock left_, right_;  // A and B of all segments, one after the other; with A what is dense
};

PowerSgdSettings read_powersgd_settings(Config& exchange) {
  PowerSgdSettings settings;
  settings.rank = static_cast<std::size_t>(
      exchange.integer("rank", 1, Range::between(1, 1e6), "directions of every matrix that travel (r)"));
  settings.dense_iterations =
      exchange.integer("dense_iterations", 100, Range::at_least(0),
                       "iterations at the start in which everything travels; PyTorch's hook has 1000");
  settings.least_saving = exchange.real("least_saving", 2.0, Range::at_least(0.0),
                                        "a matrix of m times n is compressed where this times r (m + n) is less than m "
                                        "n; PyTorch's min_compression_rate");
  settings.warm_start =
      exchange.flag("warm_start", true, "B begins as that of the iteration before, and not drawn anew");
  settings.error_feedback =
      exchange.flag("error_feedback", true, "what does not travel is kept and added to the next gradient");
  settings.seed = static_cast<std::uint64_t>(
      exchange.integer("seed", 0, Range::at_least(0), "of the first B, the same on all ranks"));
  return settings;
}

class PowerSgdPlan final : public CollectivePlan {
 public:
  explicit PowerSgdPlan(Config& exchange) : settings_(read_powersgd_settings(exchange)) {
    exchange.choice("schedule", "lockstep", {"lockstep"}, "all ranks add the same iteration",
                    "; the sums are of all ranks' gradients of one iteration. Leave it at lockstep");
  }
  std::size_t worst_case_bytes(const Layout& layout, const Topology& topology) const override {
    const Shapes shapes(layout, settings_);
    const std::size_t dense = settings_.dense_iterations > 0 ? layout.size() : 0;
    return 2 * static_cast<std::size_t>(topology.ranks() - 1) * std::max(dense, shapes.first + shapes.second) *
           sizeof(float);
  }
  /// State of the iterations after the dense ones.
  std::optional<ExchangeCost> cost(const Layout& layout, const Topology& topology,
                                   const CostAssumptions& assumptions) const override {
    const Shapes shapes(layout, settings_);
    ExchangeCost cost =
        allreduce_cost(topology.ranks(), shapes.first + shapes.second, shapes.second > 0 ? 2 : 1, assumptions);
    constexpr double words = 12.0;  // r + g; M twice; A Bᵀ; r − g
    cost.local = cost.local + LocalWork{.moved_bytes = words * sizeof(float) * static_cast<double>(layout.size())};
    return cost;
  }
  std::unique_ptr<Exchange> build(const ExchangeContext& context) const override {
    return std::make_unique<PowerSgd>(context, settings_);
  }
  std::size_t kept_bytes(const Layout& layout, std::size_t, int ranks) const override {
    const Shapes shapes(layout, settings_);
    const std::size_t sent = settings_.dense_iterations > 0 ? layout.size() : shapes.first;
    return (layout.size() + shapes.first + shapes.second + sent / static_cast<std::size_t>(ranks)) * sizeof(float);
  }
  ExchangeLaws laws() const override {
    return {.mixes = ExchangeLaws::Mixes::gradients, .replicas_agree = true, .keeps_mass = settings_.error_feedback};
  }

 private:
  PowerSgdSettings settings_;
};

}  // namespace

ExchangeEntry powersgd_exchange() {
  return {
      .name = "powersgd",
      .summary = "S-SGD with the best r directions of every matrix, by power iteration and error feedback",
      .equation = "M_i <- r_i + g_i;  A <- orthogonal(mean M_i B);  B <- mean M_i^T A;  g <- A B^T;  r_i <- M_i - g",
      .cost = "4 (P - 1) messages, 8 (P - 1)/P (r (m + n) a matrix + the rest) bytes a rank; one block of residuals",
      .citation = "vogels2019powersgd, Algorithms 1 and 2",
      .make = [](Config& exchange, Config&) -> std::unique_ptr<ExchangePlan> {
        return std::make_unique<PowerSgdPlan>(exchange);
      }};
}

}  // namespace hearsay
