// A program outside Hearsay that trains a module of its own: mpirun -n 2 stripes RUN_FOLDER
#include <hearsay/hearsay.hpp>
#include <iostream>
#include <memory>
#include <string>

struct Net : torch::nn::Module {
  torch::nn::Linear hidden{register_module("hidden", torch::nn::Linear(64, 16))};
  torch::nn::Linear out{register_module("out", torch::nn::Linear(16, 2))};
  torch::Tensor forward(const torch::Tensor& images) { return out(torch::relu(hidden(images.flatten(1)))); }
};

/// 8×8 images with stripes: upright ones are class 0, level ones class 1.
hearsay::ImageSet stripes(std::size_t count) {
  hearsay::ImageSet set{.channels = 1, .height = 8, .width = 8, .classes = 2, .pixels = {}, .labels = {}};
  for (std::size_t i = 0; i < count; ++i) {
    set.labels.push_back(i % 2);
    for (std::size_t p = 0; p < 64; ++p) set.pixels.push_back((((i % 2 ? p / 8 : p % 8) + i / 2) / 2) % 2 * 255);
  }
  return set;
}
auto data() { return hearsay::image_classification({"stripes", stripes(128), stripes(64), {0.5f}, {0.5f}}); }

int main(int, char** argv) {
  const auto job = hearsay::start_job();
  try {
    hearsay::Config config = hearsay::Config::from_text("data: {batch_size: 8}\noptimizer: {learning_rate: 0.1}\n");
    config.document().override_with("train.epochs=20");
    config.document().override_with(std::string("report.directory=") + argv[1]);
    const auto net = [](auto&) { return hearsay::Model(std::make_shared<Net>()); };
    const hearsay::RunPlan plan(config,
                                {.model_name = "net", .dataset_name = "stripes", .make_model = net, .load_data = data});
    const hearsay::Summary summary = hearsay::train(*job, plan);
    if (job->rank() == 0) std::cout << job->ranks() << " ranks, accuracy " << *summary.accuracy_mean_model << "\n";
    return job->rank() == 0 && (job->ranks() != 2 || summary.accuracy_mean_model < 0.9) ? 1 : 0;
  } catch (const std::exception& error) {
    std::cerr << error.what() << std::endl;
    job->abort(1);
  }
}
