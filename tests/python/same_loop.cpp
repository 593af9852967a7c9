// The loop of tests/python/same_loop.py in C++, on the same model, data and random numbers: to compare bits and times.
//   mpirun -n 2 same_loop gossip.yaml FOLDER STEPS BATCH [bare | given | both]
// Rank 0 writes the model that all begin with, and every rank its batches, into FOLDER; the Python loop reads them.
// Prints one JSON object a rank. `bare`: no participant, the optimizer alone. `given`: the batches lie there already,
// as inputsRANK and labelsRANK, all of them 4-byte floats. `both`: without and with a participant, ten steps each in
// turn, so that what else the machine does slows both down.
#include <hearsay/participant.hpp>

#include <torch/torch.h>

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <fstream>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace {

constexpr double learning_rate = 0.05, momentum = 0.9;
constexpr int batches = 4;  // that are made, for the loop to go round

/// Two convolutions, dropout, two dense layers; for 28×28 images in ten classes.
struct Net : torch::nn::Module {
  Net()
      : conv1(register_module("conv1", torch::nn::Conv2d(torch::nn::Conv2dOptions(1, 10, 3)))),
        conv2(register_module("conv2", torch::nn::Conv2d(torch::nn::Conv2dOptions(10, 20, 3)))),
        drop(register_module("drop", torch::nn::Dropout(0.5))),
        fc1(register_module("fc1", torch::nn::Linear(500, 50))),
        fc2(register_module("fc2", torch::nn::Linear(50, 10))) {}
  torch::Tensor forward(torch::Tensor x) {
    x = torch::relu(torch::max_pool2d(conv1(x), 2));
    x = torch::relu(torch::max_pool2d(conv2(x), 2));
    return fc2(drop(torch::relu(fc1(x.flatten(1)))));
  }
  torch::nn::Conv2d conv1, conv2;
  torch::nn::Dropout drop;
  torch::nn::Linear fc1, fc2;
};

hearsay::Layout layout_of(const Net& net) {
  hearsay::Layout layout;
  for (const auto& item : net.named_parameters()) layout.append(item.key(), item.value().sizes().vec());
  return layout;
}

/// Makes the module's parameters and gradients views of the replica.
void bind(Net& net, hearsay::Parameters& replica) {
  const torch::NoGradGuard no_gradient;
  hearsay::SegmentId s = 0;
  for (auto& item : net.named_parameters()) {
    torch::Tensor parameter = item.value();
    const hearsay::Segment& segment = replica.layout[s++];
    torch::Tensor x = torch::from_blob(replica.values.segment(segment).data(), parameter.sizes());
    x.copy_(parameter);
    parameter.set_data(x);
    parameter.mutable_grad() = torch::from_blob(replica.gradients.segment(segment).data(), parameter.sizes());
  }
}

void write(const std::string& file, const torch::Tensor& tensor) {
  const torch::Tensor floats = tensor.to(torch::kFloat32).contiguous();
  std::ofstream(file, std::ios::binary)
      .write(static_cast<const char*>(floats.data_ptr()), static_cast<std::streamsize>(floats.nbytes()));
}

torch::Tensor read(const std::string& file) {
  std::ifstream in(file, std::ios::binary | std::ios::ate);
  if (!in) throw hearsay::DataError(file + " cannot be read");
  const auto bytes = static_cast<std::int64_t>(in.tellg());
  torch::Tensor floats = torch::empty({bytes / 4});
  in.seekg(0).read(static_cast<char*>(floats.data_ptr()), bytes);
  return floats;
}

/// Inputs of shape {batches, batch, 1, 28, 28} and labels of {batches, batch}.
struct Batches {
  torch::Tensor inputs, labels;

  static Batches given(const std::string& folder, const std::string& rank, int batch) {
    return {read(folder + "/inputs" + rank).view({-1, batch, 1, 28, 28}),
            read(folder + "/labels" + rank).to(torch::kInt64).view({-1, batch})};
  }
  static Batches made(const std::string& folder, const std::string& rank, int batch) {
    const Batches all{torch::randn({batches, batch, 1, 28, 28}), torch::randint(10, {batches, batch})};
    write(folder + "/inputs" + rank, all.inputs);
    write(folder + "/labels" + rank, all.labels);
    return all;
  }
};

/// A model whose parameters and gradients are those of a replica, and its optimizer. All are made equal.
struct Learner {
  Learner()
      : net(seeded()),
        replica(layout_of(net)),
        gradients(
            torch::from_blob(replica.gradients.span().data(), {static_cast<std::int64_t>(replica.gradients.size())})),
        optimizer(net.parameters(), torch::optim::SGDOptions(learning_rate).momentum(momentum)) {
    bind(net, replica);
  }
  static Net seeded() {
    torch::manual_seed(1);
    return {};
  }
  Net net;
  hearsay::Parameters replica;
  torch::Tensor gradients;  // all of them
  torch::optim::SGD optimizer;
};

void step(Learner& learner, hearsay::Participant* member, hearsay::Iteration k, const torch::Tensor& inputs,
          const torch::Tensor& labels) {
  learner.gradients.zero_();
  if (member != nullptr) member->start(k);
  torch::cross_entropy_loss(learner.net.forward(inputs), labels).backward();
  if (member != nullptr) {
    member->learning_rate(learning_rate);
    member->finish(k);
  }
  learner.optimizer.step();
  if (member != nullptr) member->stepped(k);
}

/// Seconds of CLOCK_MONOTONIC, or of processor time: of this thread, of all threads.
double now(clockid_t clock) {
  timespec time{};
  clock_gettime(clock, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

double median_ms(std::vector<double> seconds) {
  if (seconds.empty()) return 0.0;
  std::ranges::sort(seconds);
  return 1e3 * seconds[seconds.size() / 2];
}

/// Times of steps: by the clock, and processor time of the thread that computes.
struct Times {
  std::vector<double> clock, thread;

  template <class Step>
  void of(const Step& step) {
    const double start = now(CLOCK_MONOTONIC), thread_start = now(CLOCK_THREAD_CPUTIME_ID);
    step();
    clock.push_back(now(CLOCK_MONOTONIC) - start);
    thread.push_back(now(CLOCK_THREAD_CPUTIME_ID) - thread_start);
  }
};

struct Found {
  Times bare, member;
  double process_ms;
};

/// Without a member the bare loop. With `alone` steps of the bare loop, by that one, in turn with the member's.
Found run(int steps, const Batches& data, Learner& learner, hearsay::Participant* member, Learner* alone) {
  Found found{};
  hearsay::Iteration k = 0;  // of the member
  const double start = now(CLOCK_PROCESS_CPUTIME_ID);
  for (int i = 0; i < steps; ++i) {
    const std::int64_t b = i % data.inputs.size(0);
    const torch::Tensor inputs = data.inputs[b], labels = data.labels[b];
    if (alone != nullptr && i / 10 % 2 == 0)
      found.bare.of([&] { step(*alone, nullptr, i, inputs, labels); });
    else if (member == nullptr)
      found.bare.of([&] { step(learner, nullptr, i, inputs, labels); });
    else
      found.member.of([&] { step(learner, member, k++, inputs, labels); });
  }
  found.process_ms = 1e3 * (now(CLOCK_PROCESS_CPUTIME_ID) - start) / steps;
  return found;
}

void print(int rank, const Learner& learner, const Found& found, const hearsay::LedgerTotals& counts) {
  const bool bare = found.member.clock.empty();
  const Times& times = bare ? found.bare : found.member;
  std::printf(
      "{\"rank\": %d, \"hash\": \"%016llx\", \"messages\": %llu, \"bytes\": %llu, \"control_bytes\": %llu, "
      "\"median_ms\": %.4f, \"thread_ms\": %.4f, \"process_ms\": %.4f, \"bare_median_ms\": %.4f, "
      "\"bare_thread_ms\": %.4f}\n",
      rank, static_cast<unsigned long long>(hearsay::replica_hash(learner.replica.values.span())),
      static_cast<unsigned long long>(counts.messages), static_cast<unsigned long long>(counts.bytes()),
      static_cast<unsigned long long>(counts.control_bytes), median_ms(times.clock), median_ms(times.thread),
      found.process_ms, median_ms(found.bare.clock), median_ms(found.bare.thread));
}

void run(const hearsay::Job& job, std::span<char*> words) {
  if (words.size() < 5) throw hearsay::ConfigError("usage: same_loop CONFIG FOLDER STEPS BATCH [bare | given | both]");
  const std::string folder = words[2], rank = std::to_string(job.rank());
  const int steps = std::atoi(words[3]), batch = std::atoi(words[4]);
  const std::string mode = words.size() > 5 ? words[5] : "";
  torch::set_num_threads(1);
  Learner learner, alone;
  if (job.rank() == 0) {
    const auto x0 = std::as_bytes(learner.replica.values.span());
    std::ofstream(folder + "/x0", std::ios::binary)
        .write(reinterpret_cast<const char*>(x0.data()), static_cast<std::streamsize>(x0.size()));
  }
  torch::manual_seed(static_cast<std::uint64_t>(100 + job.rank()));
  const Batches data = mode == "given" ? Batches::given(folder, rank, batch) : Batches::made(folder, rank, batch);
  const hearsay::ParticipantPlan plan(hearsay::Config::from_file(words[1]));
  std::optional<hearsay::Participant> member;
  if (mode != "bare")
    member.emplace(job.transport(), plan.topology(job.ranks()), plan.exchange(), learner.replica,
                   hearsay::ParticipantOptions{.step = {.learning_rate = learning_rate, .momentum = momentum}});
  torch::manual_seed(static_cast<std::uint64_t>(job.rank()));
  const Found found = run(steps, data, learner, member ? &*member : nullptr, mode == "both" ? &alone : nullptr);
  if (member) member->settle();
  print(job.rank(), learner, found, member ? member->ledger().totals() : hearsay::LedgerTotals{});
}

}  // namespace

int main(int argc, char** argv) {
  const auto job = hearsay::start_job();
  try {
    run(*job, std::span(argv, static_cast<std::size_t>(argc)));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "[rank %d] %s\n", job->rank(), error.what());
    job->abort(1);
  }
}
