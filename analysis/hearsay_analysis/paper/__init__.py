"""The papers' figures and tables that can be run here. To add one: an Experiment in a file of this folder, and its line in
EXPERIMENTS."""
from hearsay_analysis.paper import dropping, eventgrad_curves, eventgrad_tables, gtopk

EXPERIMENTS = [
    eventgrad_tables.TABLE_1,
    eventgrad_tables.MNIST,
    eventgrad_tables.TABLE_2,
    eventgrad_curves.FIGURES_4_5,
    eventgrad_curves.FIGURE_6,
    gtopk.FIGURES_1_5,
    gtopk.RESIDUAL,
    dropping.FIGURE_6,
]

# What of the same papers is not there, and why.
NOT_HERE = [
    (
        "EventGraD, Tables 1 and 2 on CIFAR-10 with ResNet-18, to 32 ranks",
        "`configs/cifar10/` has the settings; not run: this machine has two cores",
    ),
    ("gTop-k, Figs. 6, 7", "ImageNet and Penn Treebank are not at hand"),
    (
        "gTop-k, Figs. 8 to 11 and Table IV; LKGS, Fig. 3; Gradient Dropping, Table 1",
        "times of a cluster with 1 Gbit/s or of GPUs; `hearsay bench collectives` measures this machine's memory",
    ),
    (
        "gTop-k, Figs. 12 to 14; LKGS, Fig. 2",
        "CIFAR-10 with VGG-16, ResNet-20 and ResNet-50 for a hundred epochs and more",
    ),
    ("Gradient Dropping, Figs. 3, 5, 7 and Table 2", "machine translation: neither model nor data"),
    ("Gradient Dropping, Figs. 2, 4, 8", "can be run (MNIST), have no sweep yet"),
]
