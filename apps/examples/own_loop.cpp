// A training loop of one's own: own data, own loss, own optimizer. No LibTorch. See docs/guide/extending.md.
//   mpirun -n 4 own_loop gossip.yaml
#include <hearsay/participant.hpp>

#include <algorithm>
#include <cstdio>
#include <random>
#include <vector>

constexpr float learning_rate = 0.05F;

/// Fits y = a·u + b to points that every rank draws for itself: the ranks' lines differ, and so do their slopes.
struct Line {
  explicit Line(int rank) : random(static_cast<unsigned>(rank)), slope(rank % 2 == 0 ? 1.5F : 2.5F) {}
  /// Loss of one batch at x = (a, b), and its gradient.
  float loss_and_gradient(const std::vector<float>& x, std::vector<float>& g) {
    std::uniform_real_distribution<float> draw(-1.0F, 1.0F);
    constexpr int batch = 32;
    float loss = 0.0F;
    std::fill(g.begin(), g.end(), 0.0F);  // in place: g is what the participant sees
    for (int i = 0; i < batch; ++i) {
      const float u = draw(random), error = x[0] * u + x[1] - (slope * u + 1.0F);
      loss += error * error / batch;
      g[0] += 2.0F * error * u / batch;
      g[1] += 2.0F * error / batch;
    }
    return loss;
  }
  std::mt19937 random;
  float slope;
};

int main(int argc, char** argv) try {
  const auto job = hearsay::start_job();  // whatever has started this process
  try {
    std::vector<float> x(2), g(2);  // anybody's memory
    hearsay::Layout layout;
    layout.append("slope", {1});
    layout.append("offset", {1});
    hearsay::Parameters replica(layout, x, g);
    const hearsay::ParticipantPlan plan(argc > 1 ? hearsay::Config::from_file(argv[1]) : hearsay::Config());
    hearsay::Participant member(job->transport(), plan.topology(job->ranks()), plan.exchange(), replica,
                                {.step = {.learning_rate = learning_rate}});

    Line line(job->rank());
    for (hearsay::Iteration k = 0; k < 400; ++k) {
      member.start(k);  // x_k is final: what has news goes out
      line.loss_and_gradient(x, g);
      member.finish(k);  // mixes x with what has come, or replaces g
      for (std::size_t i = 0; i < x.size(); ++i) x[i] -= learning_rate * g[i];
      member.stepped(k);
    }
    member.settle();
    const hearsay::LedgerTotals counts = member.ledger().totals();
    std::printf("rank %d: y = %.2f u + %.2f after %llu messages, %llu bytes\n", job->rank(), x[0], x[1],
                static_cast<unsigned long long>(counts.messages), static_cast<unsigned long long>(counts.bytes()));
  } catch (const hearsay::Error& error) {  // the others may wait for this rank
    std::fprintf(stderr, "[rank %d] %s\n", job->rank(), error.what());
    job->abort(static_cast<int>(error.code()));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "[rank %d] %s\n", job->rank(), error.what());
    job->abort(1);
  }
} catch (const hearsay::Error& refused) {
  std::fprintf(stderr, "%s\n", refused.what());
  return static_cast<int>(refused.code());
}
