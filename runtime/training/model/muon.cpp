// muon: matrices are moved along their momentum, whose singular values are all made about 1.
//   m ← μ m + (1 − μ) g;  u = (1 − μ) g + μ m, or m without Nesterov's look-ahead
//   X = u / (‖u‖ + 1e-7);  `newton_schulz` times  A = X Xᵀ, Q = a + b A + c A², X ← Q X
//   x ← (1 − η λ) x − η s X;  s = 0.2 √max(rows, columns), or √max(1, rows / columns)
// (a, b, c) = (3.4445, −4.7750, 2.0315). A convolution is a matrix with a row an output. Embeddings, the head and what
// has one dimension: adamw, with keys of its own.
// jordan2024muon (momentum, the iteration, the second s); liu2025muon, section 2.2 (decay, the first s).
// Deviates from both in: all is float32, theirs bfloat16 in the iteration. Where one side is at least twice the other,
// A ← Q A Q and P ← Q P take the place of X, which is P X at the end: equal but for rounding, some 2e-4 of ‖X‖, in 0.6
// of the time at 1 : 4.
// Cost: a block of the matrices, two of the rest, and what the largest matrix takes while it is moved. Multiplications,
// of sides m ≤ n: 5 (2 m² n + m³); where n ≥ 2 m, 2 m² n + 17 m³.
#include <algorithm>
#include <cmath>
#include <iterator>
#include <set>
#include <sstream>
#include <string>
#include <utility>

#include "base/error.hpp"
#include "runtime/training/model/libtorch_optimizer.hpp"
#include "runtime/training/model/model.hpp"
#include "runtime/training/model/optimizer_keys.hpp"

namespace hearsay {
namespace {

enum class Scale { match_rms_adamw, original };

struct MuonOptions {
  double learning_rate, momentum, weight_decay;
  bool nesterov;
  std::int64_t newton_schulz;
  Scale scale;
  torch::optim::AdamWOptions others;
  std::set<std::string> layers;  // all of whose tensors are others
  OptimizerExtras extras;
};

// ---------------------------------------------------------------- which tensors are matrices

/// The trainable tensors of a model by what moves them.
struct Division {
  std::vector<SegmentId> matrices;
  std::vector<torch::Tensor> others;
};

/// `blocks.0.up`, for its weight.
std::string layer_of(const std::string& tensor) {
  const std::size_t dot = tensor.rfind('.');
  return dot == std::string::npos ? tensor : tensor.substr(0, dot);
}

std::set<const void*> weights_of_embeddings(const torch::nn::Module& module) {
  std::set<const void*> found;
  for (const auto& part : module.modules())
    if (const auto* const table = part->as<torch::nn::EmbeddingImpl>())
      found.insert(table->weight.unsafeGetTensorImpl());
  return found;
}

void require_layers(const std::set<std::string>& layers, const Layout& layout) {
  std::set<std::string> known;
  for (SegmentId s = 0; s < layout.count(); ++s) known.insert(layer_of(layout[s].name));
  for (const std::string& layer : layers)
    if (!known.contains(layer))
      throw ConfigError("optimizer.others.layers: the model has no layer '" + layer +
                        "' with parameters; its first tensor is '" + layout[0].name + "', of the layer '" +
                        layer_of(layout[0].name) + "'");
}

/// The head is the layer of this name or, where nothing is embedded, the last matrix.
Division division(Model& model, const std::set<std::string>& layers) {
  const Layout& layout = model.replica().layout;
  require_layers(layers, layout);
  const auto embeddings = weights_of_embeddings(model.module());
  const auto is_head = [](const std::string& layer) { return layer == "head" || layer.ends_with(".head"); };
  bool has_head = !embeddings.empty();
  Division made;
  const auto& all = model.trainable();
  for (SegmentId s = static_cast<SegmentId>(all.size()); s-- > 0;) {
    const std::string layer = layer_of(layout[s].name);
    if (all[s].dim() < 2 || embeddings.contains(all[s].unsafeGetTensorImpl())) {
      made.others.push_back(all[s]);
    } else if (!std::exchange(has_head, true) || is_head(layer) || layers.contains(layer)) {
      made.others.push_back(all[s]);
    } else {
      made.matrices.push_back(s);
    }
  }
  return made;
}

// ---------------------------------------------------------------- the iteration

constexpr double a = 3.4445, b = -4.7750, c = 2.0315;

/// b A + c A².
torch::Tensor added(const torch::Tensor& A) { return torch::addmm(A, A, A, b, c); }

/// `steps` times X ← (a + b A + c A²) X with A = X Xᵀ, of a wide X.
torch::Tensor iterated(torch::Tensor X, std::int64_t steps) {
  for (std::int64_t i = 0; i < steps; ++i) X = torch::addmm(X, added(torch::mm(X, X.t())), X, a);
  return X;
}

/// The same by A alone. What rounding makes of an eigenvalue of 0 grows by a² a step: for a few steps only.
torch::Tensor iterated_by_gram(const torch::Tensor& X, std::int64_t steps) {
  torch::Tensor A = torch::mm(X, X.t()), P;
  for (std::int64_t i = 0; i < steps; ++i) {
    const torch::Tensor Q = added(A);
    Q.diagonal().add_(a);
    P = P.defined() ? torch::mm(Q, P) : Q;
    if (i + 1 < steps) A = torch::mm(torch::mm(Q, A), Q);
  }
  return torch::mm(P, X);
}

/// The matrix of u's singular vectors, its singular values about 1.
torch::Tensor orthogonalised(const torch::Tensor& u, std::int64_t steps) {
  constexpr double never_zero = 1e-7;
  constexpr std::int64_t most_by_gram = 5;
  const bool tall = u.size(0) > u.size(1);
  const torch::Tensor X = (tall ? u.t() : u) / (u.norm() + never_zero);
  const bool slim = X.size(1) >= 2 * X.size(0) && steps <= most_by_gram;
  const torch::Tensor made = slim ? iterated_by_gram(X, steps) : iterated(X, steps);
  return tall ? made.t() : made;
}

/// s, of a matrix of such sides.
double scale_of(Scale scale, double rows, double columns) {
  return scale == Scale::match_rms_adamw ? 0.2 * std::sqrt(std::max(rows, columns))
                                         : std::sqrt(std::max(1.0, rows / columns));
}

/// At most, while that matrix is moved: u, X and the next X; A, Q, P and the next A.
std::size_t work_bytes(const torch::Tensor& x) {
  const std::int64_t rows = x.size(0), columns = x.numel() / x.size(0), shorter = std::min(rows, columns);
  return static_cast<std::size_t>(3 * x.numel() + 4 * shorter * shorter) * sizeof(float);
}

// ---------------------------------------------------------------- the optimizer

class Muon final : public Optimizer {
 public:
  Muon(Model& model, Division parts, const MuonOptions& options)
      : device_(model.replica().device), all_(model.trainable()), options_(options), rate_(options.learning_rate) {
    for (const SegmentId s : parts.matrices) {
      const torch::Tensor x = all_[s].detach().flatten(1);
      const double scale = scale_of(options.scale, static_cast<double>(x.size(0)), static_cast<double>(x.size(1)));
      matrices_.push_back({.segment = s, .scale = scale, .x = x, .g = all_[s].grad().flatten(1), .momentum = {}});
    }
    OptimizerExtras of_others = options.extras;
    of_others.clip_norm = 0.0;  // all gradients are clipped together
    others_ = std::make_unique<Others>(model.replica(), std::move(parts.others), options.others, of_others);
  }

  void step() override {
    {
      const ComputeSlice slice(*device_);
      if (options_.extras.clip_norm > 0.0) torch::nn::utils::clip_grad_norm_(all_, options_.extras.clip_norm);
      const torch::NoGradGuard no_gradient;
      for (Matrix& matrix : matrices_) move(matrix);
    }
    others_->step();
  }

  void set_learning_rate(double learning_rate) override {
    rate_ = learning_rate;
    others_->set_learning_rate(learning_rate / options_.learning_rate * options_.others.lr());
  }

  /// A step's root mean square is η s / √max(rows, columns) whatever the gradient's is: to an exchange, an optimizer
  /// that divides the gradients of a matrix by their root mean square. Directions of smaller singular values move
  /// further than that says.
  std::vector<StepResponse> steps() const override {
    std::vector<StepResponse> now = others_->steps();
    for (const Matrix& matrix : matrices_) {
      const auto longer = static_cast<double>(std::max(matrix.x.size(0), matrix.x.size(1)));
      now[matrix.segment] = {.learning_rate = rate_ * matrix.scale / std::sqrt(longer),
                             .momentum = options_.momentum,
                             .dampening = options_.momentum,
                             .normalised = StepResponse::Normalised{.memory = options_.momentum}};
    }
    return now;
  }

  void state(Archive& archive) override {
    {
      const ComputeSlice slice(*device_);
      for (Matrix& matrix : matrices_)
        optional_tensor_state(archive, "momentum", matrix.x, [&]() -> torch::Tensor& { return matrix.momentum; });
    }
    others_->state(archive);
  }

 private:
  using Others = LibTorchOptimizer<torch::optim::AdamW>;
  struct Matrix {
    SegmentId segment;
    double scale;                  // s
    torch::Tensor x, g, momentum;  // views with a row an output; no momentum before the first step
  };

  void move(Matrix& matrix) const {
    const double mu = options_.momentum;
    if (!matrix.momentum.defined()) matrix.momentum = torch::zeros_like(matrix.x);
    matrix.momentum.lerp_(matrix.g, 1.0 - mu);
    const torch::Tensor u = options_.nesterov ? torch::lerp(matrix.g, matrix.momentum, mu) : matrix.momentum;
    matrix.x.mul_(1.0 - rate_ * options_.weight_decay);
    matrix.x.add_(orthogonalised(u, options_.newton_schulz), -rate_ * matrix.scale);
  }

  std::shared_ptr<Device> device_;
  std::vector<torch::Tensor> all_;
  MuonOptions options_;
  double rate_;
  std::vector<Matrix> matrices_;
  std::unique_ptr<Others> others_;
};

class MuonPlan final : public OptimizerPlan {
 public:
  explicit MuonPlan(MuonOptions options) : options_(std::move(options)) {}
  double learning_rate() const override { return options_.learning_rate; }
  bool is_by_value() const override { return false; }
  std::size_t kept_bytes(Model& model) const override {
    const Division parts = division(model, options_.layers);
    std::size_t momentum = 0, work = 0;
    for (const SegmentId s : parts.matrices) {
      momentum += model.trainable()[s].nbytes();
      work = std::max(work, work_bytes(model.trainable()[s]));
    }
    return momentum + static_cast<std::size_t>(blocks_of_adam(options_.others)) * bytes_of(parts.others) + work;
  }
  std::unique_ptr<Optimizer> build(Model& model) const override {
    return std::make_unique<Muon>(model, division(model, options_.layers), options_);
  }

 private:
  MuonOptions options_;
};

std::set<std::string> words_of(const std::string& text) {
  std::istringstream in(text);
  return {std::istream_iterator<std::string>(in), {}};
}

Scale read_scale(Config& config) {
  const std::string scale =
      config.choice("scale", "match_rms_adamw", {"match_rms_adamw", "original"},
                    "s: match_rms_adamw: 0.2 sqrt(max(rows, columns)), so that values move as far as by "
                    "adamw and its rates fit; original: sqrt(max(1, rows / columns))");
  return scale == "match_rms_adamw" ? Scale::match_rms_adamw : Scale::original;
}

std::unique_ptr<OptimizerPlan> make_muon(Config& config) {
  MuonOptions options{
      .learning_rate = read_learning_rate(config, 1e-3),
      .momentum = config.real("momentum", 0.95, Range::fraction_below_one(), "mu: m <- mu m + (1 - mu) g"),
      .weight_decay = read_weight_decay(config, 0.1, decoupled_decay),
      .nesterov = config.flag("nesterov", true, "look ahead: u is (1 - mu) g + mu m"),
      .newton_schulz =
          config.integer("newton_schulz", 5, Range::between(1, 20), "iterations that make the singular values about 1"),
      .scale = read_scale(config),
      .others = {},
      .layers = {},
      .extras = read_extras(config)};
  Config others = config.section("others");
  options.others =
      read_adam<torch::optim::AdamWOptions>(others, options.learning_rate, options.weight_decay, decoupled_decay);
  options.layers = words_of(others.text("layers", "",
                                        "layers that adamw moves beside embeddings, head, biases and gains: names, as "
                                        "`blocks.0.up`, with spaces between them"));
  return std::make_unique<MuonPlan>(std::move(options));
}

}  // namespace

OptimizerEntry muon_optimizer() {
  return {.name = "muon",
          .summary = "matrices along their momentum with all singular values about 1; adamw for the rest",
          .equation = "m <- mu m + (1-mu) g; u = (1-mu) g + mu m; x <- (1 - eta lambda) x - eta s NewtonSchulz(u)",
          .cost =
              "one block more of matrices, two of the rest; 5 (2 m^2 n + m^3) multiplications a matrix of sides "
              "m <= n, 2 m^2 n + 17 m^3 from n = 2 m on",
          .citation = "jordan2024muon; liu2025muon, section 2.2",
          .make = make_muon};
}

}  // namespace hearsay
