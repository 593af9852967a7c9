#include "apps/shared/chosen_run.hpp"

#include <optional>
#include <utility>

#include "apps/datasets/datasets.hpp"
#include "apps/models/models.hpp"
#include "runtime/data/classes.hpp"
#include "runtime/training/model/model.hpp"
#include "runtime/training/session.hpp"

namespace hearsay {
namespace {

constexpr std::string_view of_another_program =
    " (a Python loop, or another program, that has written this configuration has a model and data of its own, and "
    "repeats its run by the command in manifest.json; to train here, say `model`, `data`, `optimizer` and `train`)";

/// "mlp, lenet5, …"
template <class Table>
std::string known(Table table) {
  std::string names;
  for (const auto& entry : table) names += (names.empty() ? "" : ", ") + std::string(entry.name);
  return names;
}

}  // namespace

/// A model and a data set as the configuration chooses them. Data that were loaded to see whether they can be are kept
/// for the training.
class ChosenTask {
 public:
  explicit ChosenTask(Config& root) {
    const std::uint64_t seed = read_seed(root);
    Config model = root.section("model");
    model.require(model.has("name"), "name", "say what is trained; known: " + known(models()));
    const ModelEntry& model_entry =
        chosen_entry(models(), model, models().front().name, "what is trained", of_another_program);
    factory_ = model_entry.make(model);
    Config data = root.section("data");
    const DatasetEntry& data_entry =
        chosen_entry(datasets(), data, datasets().front().name, "what it is trained on", of_another_program);
    if (!data.has("name"))
      root.note("no data.name: the data are " + std::string(data_entry.name) + ", which need no file");
    source_ = data_entry.make(data, seed);
    model_name_ = model_entry.name;
    dataset_name_ = data_entry.name;
  }

  /// Throws what is wrong with the data's files, or with this model for these data.
  void check() {
    loaded_ = source_->load();
    require_few_classes(*loaded_);
    static_cast<void>(factory_->make(loaded_->shape));
  }

  void share() { shared_ = true; }

  DataSet load() {
    if (shared_ && loaded_) return *loaded_;
    return loaded_ ? *std::exchange(loaded_, std::nullopt) : source_->load();
  }

  /// `self` lives as long as the task.
  static Task task(const std::shared_ptr<ChosenTask>& self) {
    return {.model_name = self->model_name_,
            .dataset_name = self->dataset_name_,
            .make_model = [self](const ExampleShape& shape) { return self->factory_->make(shape); },
            .load_data = [self] { return self->load(); }};
  }

 private:
  std::unique_ptr<ModelFactory> factory_;
  std::unique_ptr<DatasetSource> source_;
  std::string model_name_, dataset_name_;
  std::optional<DataSet> loaded_;
  bool shared_ = false;
};

ChosenRun::ChosenRun(Config root) : task_(std::make_shared<ChosenTask>(root)), plan_(root, ChosenTask::task(task_)) {}

void ChosenRun::check() const {
  require_device(plan_);
  task_->check();
}

void ChosenRun::share_data() const { task_->share(); }

}  // namespace hearsay
