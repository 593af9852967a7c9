"""The papers' figures and tables that can be run here. To add one: an Experiment in a file of this folder, and its line in
EXPERIMENTS."""
from hearsay_analysis.paper import (
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

# What of the same papers is not there, and why.
NOT_HERE = [
    (
        "EventGraD, Tables 1 and 2 on CIFAR-10 with ResNet-18, 20 epochs, to 32 ranks",
        "`configs/cifar10/dpsgd-resnet18.yaml`, `eventgrad-resnet18.yaml` and `sparse-eventgrad-resnet18.yaml` have the "
        "settings; not run: this machine has two cores",
    ),
    (
        "gTop-k, Fig. 5 and LKGS, Fig. 2 at full length",
        "`configs/cifar10/gtopk-resnet20.yaml` and `lkgs-resnet20.yaml` have the settings for ResNet-20; not run, for the "
        "same reason. VGG-16 and ResNet-50 are not among the models",
    ),
    ("gTop-k, Figs. 6, 7", "ImageNet and Penn Treebank are not at hand"),
    ("gTop-k, Fig. 8", "the α and β of a network: `hearsay probe` measures those of yours"),
    (
        "Gradient Dropping, Table 1",
        "speed of training on four GPUs; `hearsay bench training` and Fig. 6's runs are ours",
    ),
    ("Gradient Dropping, Figs. 3, 5, 7 and Table 2", "machine translation: neither model nor data"),
]
