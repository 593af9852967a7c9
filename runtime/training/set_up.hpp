#pragma once
// Makes a rank's parts from a plan: threads, data, model, batches. Private to sessions, dry runs and
// benchmarks.
#include "runtime/training/model/batches.hpp"
#include "runtime/training/model/model.hpp"
#include "runtime/training/run_plan.hpp"
#include "runtime/transport/communicator.hpp"

namespace hearsay {

/// Sets how many threads LibTorch computes with, and the BLAS under it. That one reads its environment before `main`
/// begins and would otherwise start one thread a core in every rank.
void use_threads(int threads);

/// Throws DataError if there is nothing to train or to test on, ConfigError if these examples must not be augmented.
DataSet load_data(const RunPlan::Parts& plan);

/// The initial model is drawn from the same stream on every rank; what LibTorch draws afterwards (dropout) comes from
/// the rank's own.
Model make_model(const RunPlan::Parts& plan, const DataSet& data, std::uint64_t rank);
/// Moves a model to the device with this name ("cpu", "cuda"); ranks of a host take its GPUs in turn. `threads`: as
/// train.threads. Throws CommunicationError if there is no such device, or no room on it.
void move_to_device(Model& model, const std::string& name, int rank_on_host, int threads);
/// The same as above, on the plan's device.
Model make_model(const RunPlan::Parts& plan, const DataSet& data, std::uint64_t rank, int rank_on_host);
/// Throws CommunicationError if LibTorch finds no GPU here. Not collective.
void require_gpu();

/// The same, on rank 0 with the values of train.initial_model, if there is one: all ranks get rank 0's.
Model started_model(const RunPlan::Parts& plan, const DataSet& data, int rank, int rank_on_host);

/// All ranks compute the same partition; this is the stream of batches from one rank's share.
TrainingBatches make_batches(const RunPlan::Parts& plan, const DataSet& data, int ranks, int rank);

/// About what a checkpoint of a rank with so many neighbours takes: model, moments, what the exchange keeps and owes.
std::size_t checkpoint_bytes(const RunPlan::Parts& plan, Model& model, std::size_t neighbours, int ranks);

/// Rank 0's buffers (what belongs to the model and is no parameter) everywhere. Collective; calls MPI.
void broadcast_other_state(Model& model, Communicator& communicator);

}  // namespace hearsay
