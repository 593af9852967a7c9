# Two small configurations, and the command that trains the first. To be sourced after expect.sh.
# shellcheck shell=bash disable=SC2034,SC2154
cat >small.yaml <<'YAML'
seed: 3
model: {name: mlp, hidden: [8]}
data: {name: synthetic_digits, train_size: 256, test_size: 64, batch_size: 16}
optimizer: {name: sgd, learning_rate: 0.05}
topology: {graph: {name: ring}, weights: {name: uniform}}
exchange: {name: eventgrad, schedule: lockstep, mixing: {name: arrival}}
trigger: {name: adaptive, horizon: 1.0, warmup_iterations: 2}
train: {epochs: 2}
report: {directory: runs/small, every_iterations: 4}
YAML
sed -e '/^trigger/d' -e 's/^exchange.*/exchange: {name: dpsgd}/' small.yaml >dpsgd.yaml
train=("$hearsay" train small.yaml --progress off)
