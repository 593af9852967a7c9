"""The papers' figures and tables that can be run here. To add one: an Experiment in a file of this folder, and its line
in EXPERIMENTS."""
from paper import (
    breakdown,
    cifar10,
    dropping,
    eventgrad_curves,
    eventgrad_tables,
    gtopk,
    gtopk_times,
    mstopk,
    sensitivity,
)

EXPERIMENTS = [
    eventgrad_tables.TABLE_1,
    eventgrad_tables.MNIST,
    eventgrad_tables.TABLE_2,
    eventgrad_curves.FIGURES_4_5,
    eventgrad_curves.FIGURE_6,
    cifar10.EVENTGRAD,
    gtopk.FIGURES_1_5,
    cifar10.GTOPK,
    gtopk.RESIDUAL,
    gtopk_times.FIGURE_9_RANKS,
    gtopk_times.FIGURE_9_VALUES,
    gtopk_times.FIGURE_10,
    gtopk_times.TABLE_4,
    breakdown.GTOPK,
    sensitivity.FIGURE_12,
    sensitivity.FIGURES_13_14,
    cifar10.LKGS,
    breakdown.LKGS,
    mstopk.OPERATOR,
    mstopk.HIERARCHY,
    dropping.FIGURE_2,
    dropping.FIGURE_4,
    dropping.FIGURE_6,
    dropping.FIGURE_8,
]

# What other runs say of the papers' claims, and where they stand: [what, seen, page].
SEEN_ELSEWHERE = [
    (
        "EventGraD's released settings, asynchronously, on other machines and loads",
        "before 2026-11-24, when copies waited in queues, it ended up to two points lower; since then see above",
        "[neighbour.md](neighbour.md)",
    ),
    (
        "Gradient Dropping asynchronously, the paper's only schedule, over TCP",
        "three seeds at 100 Mbit/s, 4 and 8 ranks: ends where its lockstep does, sooner",
        "[network.md](network.md)",
    ),
    (
        "gTop-k at 0.1 % after the paper's warm-up, 8 ranks, 20 epochs",
        "two seeds: the published rule ends further behind dense than top-k",
        "[global.md](global.md)",
    ),
    (
        "MSTopK costs no accuracy against TopK-SGD",
        "one seed, HiTopKComm with nodes of 2: level",
        "[global-training.md](tables/global-training.md)",
    ),
    (
        "Gradient Dropping, Figs. 3, 5, 8: translation with 99 % dropped, by a threshold of all or of a layer, in bits",
        "Multi30k, one seed: late by some epochs",
        "[text.md](text.md)",
    ),
    (
        "gTop-k trains an LSTM to the perplexity of dense sums",
        "two layers of 128, generated words, 4 ranks, three seeds: at 0.5 and 1 % of the values after 6 epochs, at 0.1 "
        "% after 24 (one seed)",
        "[text.md](text.md)",
    ),
]

_NO_DATA = "its data are not at hand"
_TWO_CORES = "two cores are too few"
# What of the same papers is not there, and why. Figures that only explain a method are left out.
NOT_HERE = [
    (
        "EventGraD, Tables 1 and 2 and Fig. 6 on CIFAR-10 with ResNet-18, 20 epochs",
        f"{_TWO_CORES}; `configs/cifar10/*-resnet18.yaml` have the settings",
    ),
    ("EventGraD, Tables 1 and 2 at 16 and 32 ranks", _TWO_CORES),
    ("EventGraD: more epochs or more neighbours keep the accuracy of large rings", "not run"),
    ("EventGraD: a longer history gives smoother thresholds", "not run"),
    ("EventGraD, Corollaries 1 and 2: rate of convergence under thresholds a·cᵏ", "a bound; not run"),
    ("EventGraD's earlier paper (ghosh2020eventgrad): its own tables on MNIST", "its text is not at hand"),
    (
        "gTop-k, Figs. 1, 5 and 12 at full length; VGG-16",
        f"{_TWO_CORES}; `configs/cifar10/gtopk-resnet20.yaml` has the settings of ResNet-20",
    ),
    ("gTop-k, Fig. 6: AlexNet and ResNet-50 on ImageNet", _NO_DATA),
    ("gTop-k, Fig. 7: LSTM on Penn Treebank", f"{_NO_DATA}; a small one on generated words: see above"),
    ("gTop-k, Fig. 8: α and β of its network", "another network; `hearsay probe` measures yours"),
    ("gTop-k, Fig. 10 and Table IV, measured", "no 32 GPUs; simulated above"),
    ("gTop-k, Fig. 11: VGG-16, AlexNet, ResNet-50", _TWO_CORES),
    ("gTop-k, Figs. 13 and 14: VGG-16 and ResNet-20, 120 epochs", _TWO_CORES),
    (
        "LKGS, Fig. 2 at full length; VGG-16 and ResNet-50",
        f"{_TWO_CORES}; no configuration has the paper's models, batches and rates",
    ),
    ("LKGS, Fig. 3: VGG-16 on Caltech101, ResNet-50, 10 Gbit/s", _NO_DATA),
    ("LKGS: the chosen magnitudes are on average 0.8 % from those of the exact top-k", "not run"),
    ("MSTopK: time of the operator on a V100", "no such GPU"),
    (
        "HiTopKComm against other exchanges on NCCL, 128 GPUs, and where its time goes",
        "no such cluster; simulated above",
    ),
    ("MSTopK: accuracy of a Transformer and of CNNs", _NO_DATA),
    ("MSTopK: share of reading and of selecting in an iteration; caches for data", "not part of Hearsay"),
    ("Gradient Dropping, Figs. 2, 4, 6 and 8 with 4069 units a layer and 20 epochs", _TWO_CORES),
    ("Gradient Dropping, Fig. 6: better accuracy over time", "no times were compared on four GPUs"),
    ("Gradient Dropping, Table 1: speed, and communication's share of 41 and 17 %", "four GPUs of another kind"),
    (
        "Gradient Dropping, Figs. 3, 5, 7, 8 (right) and Table 2: machine translation of the WMT's texts",
        f"{_NO_DATA}; small networks on Multi30k: see above",
    ),
]
