"""The figures of the comparison page, in its order. To add one: a file with draw(runs, options) → list of Figure and
Absent, and its line here."""
from hearsay_analysis.figures import consensus, events, learning, messages, network, norms, staleness, time_breakdown

SECTIONS = [
    ("Learning", [learning.draw]),
    ("Replicas, messages, time", [consensus.draw, messages.draw, time_breakdown.draw]),
    ("Network", [network.draw]),
    ("Staleness", [staleness.draw]),
    ("Events, segment by segment", [events.draw]),
    ("Norms and thresholds", [norms.draw]),
]
