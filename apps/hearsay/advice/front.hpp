#pragma once
// The measured front of accuracy against bytes, written by research/results/front.py --advice. Means over three seeds,
// per cent; bytes are per cent of D-PSGD's.
#include <string_view>

namespace hearsay {

/// shares | graph | ranks | method | correction | averaged model | worst rank | bytes
inline constexpr std::string_view measured_front = R"(
shards | ring | 8 | all-reduce | none | 96.63 | 96.63 | 100.00
shards | ring | 8 | D-PSGD | none | 94.43 | 56.66 | 100.16
shards | ring | 8 | D-PSGD | drift | 96.67 | 96.21 | 100.16
shards | ring | 8 | int8, always | drift | 96.75 | 96.26 | 25.19
shards | ring | 8 | int8, events 0.5 | drift | 96.59 | 95.92 | 17.21
shards | ring | 8 | int8, events 1 | drift | 96.11 | 95.25 | 9.44
shards | ring | 8 | int8, events 2 | drift | 95.05 | 92.07 | 5.03
shards | ring | 8 | 2 bits, every 3rd | drift | 93.39 | 75.54 | 2.18
shards | ring | 8 | 2 bits, every 7th | drift | 91.92 | 56.72 | 0.95
shards | exponential | 8 | all-reduce | none | 96.63 | 96.63 | 100.00
shards | exponential | 8 | D-PSGD | none | 95.66 | 71.64 | 100.16
shards | exponential | 8 | D-PSGD | drift | 96.79 | 96.30 | 100.16
shards | exponential | 8 | int8, events 0.5 | drift | 96.64 | 96.15 | 17.61
shards | exponential | 8 | int8, events 2 | drift | 95.64 | 91.88 | 4.57
shards | exponential | 8 | 2 bits, every 7th | drift | 94.11 | 69.49 | 0.96
shards | ring | 16 | all-reduce | none | 95.16 | 95.16 | 100.00
shards | ring | 16 | D-PSGD | none | 88.65 | 29.91 | 100.16
shards | ring | 16 | D-PSGD | drift | 92.68 | 87.46 | 100.16
shards | ring | 16 | int8, events 0.5 | drift | 89.86 | 74.97 | 17.86
shards | ring | 16 | int8, events 2 | drift | 70.63 | 15.12 | 5.65
shards | ring | 16 | int8, events 2, strength 0.0125 | drift | 87.34 | 30.26 | 5.98
shards | ring | 16 | 2 bits, every 7th | drift | 83.58 | 26.60 | 0.97
shards | exponential | 16 | all-reduce | none | 95.16 | 95.16 | 100.00
shards | exponential | 16 | D-PSGD | none | 92.91 | 29.88 | 100.16
shards | exponential | 16 | D-PSGD | drift | 94.95 | 92.07 | 100.16
shards | exponential | 16 | int8, events 0.5 | drift | 94.42 | 92.76 | 18.15
shards | exponential | 16 | 2 bits, every 7th | drift | 88.40 | 27.11 | 0.97
dirichlet | ring | 8 | all-reduce | none | 96.43 | 96.43 | 100.00
dirichlet | ring | 8 | D-PSGD | none | 95.60 | 86.89 | 100.16
dirichlet | ring | 8 | D-PSGD | drift | 96.63 | 96.33 | 100.16
dirichlet | ring | 8 | int8, events 0.5 | drift | 96.56 | 95.85 | 17.32
dirichlet | ring | 8 | int8, events 2 | drift | 95.67 | 93.05 | 5.05
dirichlet | ring | 8 | 2 bits, every 7th | drift | 95.01 | 85.59 | 0.96
dirichlet | exponential | 8 | all-reduce | none | 96.43 | 96.43 | 100.00
dirichlet | exponential | 8 | D-PSGD | none | 96.07 | 91.57 | 100.16
dirichlet | exponential | 8 | D-PSGD | drift | 96.68 | 96.28 | 100.16
dirichlet | exponential | 8 | int8, events 0.5 | drift | 96.60 | 95.57 | 17.53
dirichlet | exponential | 8 | int8, events 2 | drift | 96.05 | 94.52 | 4.54
dirichlet | exponential | 8 | 2 bits, every 7th | drift | 95.46 | 89.07 | 0.96
dirichlet | ring | 16 | all-reduce | none | 94.61 | 94.61 | 100.00
dirichlet | ring | 16 | D-PSGD | none | 93.58 | 84.40 | 100.16
dirichlet | ring | 16 | D-PSGD | drift | 94.63 | 92.04 | 100.16
dirichlet | ring | 16 | int8, events 0.5 | drift | 94.64 | 91.62 | 17.81
dirichlet | ring | 16 | int8, events 2 | drift | 92.02 | 78.19 | 5.69
dirichlet | ring | 16 | 2 bits, every 7th | drift | 93.01 | 76.03 | 0.97
dirichlet | exponential | 16 | all-reduce | none | 94.61 | 94.61 | 100.00
dirichlet | exponential | 16 | D-PSGD | none | 94.06 | 83.86 | 100.16
dirichlet | exponential | 16 | D-PSGD | drift | 94.92 | 93.40 | 100.16
dirichlet | exponential | 16 | int8, events 0.5 | drift | 94.65 | 90.12 | 17.97
dirichlet | exponential | 16 | int8, events 2 | drift | 93.51 | 87.86 | 5.36
dirichlet | exponential | 16 | 2 bits, every 7th | drift | 93.37 | 75.78 | 0.97
iid | ring | 8 | all-reduce | none | 96.63 | 96.63 | 100.00
iid | ring | 8 | D-PSGD | none | 96.71 | 96.34 | 100.16
iid | ring | 8 | D-PSGD | drift | 96.77 | 96.33 | 100.16
iid | ring | 8 | int8, always | drift | 96.76 | 96.32 | 25.19
iid | ring | 8 | int8, events 0.5 | drift | 96.65 | 95.88 | 17.00
iid | ring | 8 | int8, events 1 | drift | 96.55 | 95.80 | 10.02
iid | ring | 8 | int8, events 2 | drift | 96.42 | 94.92 | 5.11
iid | ring | 8 | 2 bits, every 3rd | drift | 96.63 | 96.31 | 2.19
iid | ring | 8 | 2 bits, every 7th | drift | 96.63 | 96.06 | 0.96
iid | exponential | 8 | all-reduce | none | 96.63 | 96.63 | 100.00
iid | exponential | 8 | D-PSGD | none | 96.64 | 96.31 | 100.16
iid | exponential | 8 | D-PSGD | drift | 96.70 | 96.33 | 100.16
iid | exponential | 8 | int8, events 0.5 | drift | 96.64 | 96.17 | 17.48
iid | exponential | 8 | int8, events 2 | drift | 96.58 | 95.93 | 4.69
iid | exponential | 8 | 2 bits, every 7th | drift | 96.63 | 96.13 | 0.96
iid | ring | 16 | all-reduce | none | 95.18 | 95.18 | 100.00
iid | ring | 16 | D-PSGD | none | 95.37 | 94.31 | 100.16
iid | ring | 16 | D-PSGD | drift | 95.47 | 94.39 | 100.16
iid | ring | 16 | int8, events 0.5 | drift | 95.31 | 93.50 | 17.61
iid | ring | 16 | int8, events 2 | drift | 95.02 | 92.94 | 5.88
iid | ring | 16 | 2 bits, every 7th | drift | 95.24 | 94.35 | 0.97
iid | exponential | 16 | all-reduce | none | 95.18 | 95.18 | 100.00
iid | exponential | 16 | D-PSGD | none | 95.39 | 94.45 | 100.16
iid | exponential | 16 | D-PSGD | drift | 95.43 | 94.48 | 100.16
iid | exponential | 16 | int8, events 0.5 | drift | 95.30 | 94.25 | 17.83
iid | exponential | 16 | int8, events 2 | drift | 95.19 | 94.03 | 5.57
iid | exponential | 16 | 2 bits, every 7th | drift | 95.25 | 94.40 | 0.97
)";

}  // namespace hearsay
