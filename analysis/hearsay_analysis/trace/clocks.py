"""How far the ranks' clocks are apart. Ranks of one host read one clock, so there it is known; else it is estimated
from the packets that travelled both ways, as NTP does: mills1991internet.

Rank i reads t + o_i on its clock at time t. A packet from i to j that takes d then seems to take d + o_j − o_i. If the
fastest packets of both directions take equally long, half the difference of the two smallest apparent delays is o_j −
o_i; else the error is at most half of what they differ by and, as no packet arrives before it was sent, at most half of
their sum, the round trip. The offsets of all ranks are the solution over all pairs by least squares, weighted by the
inverse of the round trip, with o_0 = 0.
"""
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Clocks:
    """offsets: µs ahead of rank 0's clock, by rank. unknown: ranks that no packets both ways connect with rank 0; their
    offset is taken to be 0. disagreement: µs, the largest difference between a pair's own estimate and the offsets.
    uncertainty: µs, half of the longest round trip: what a pair's own estimate may be wrong by."""

    offsets: np.ndarray
    unknown: tuple
    disagreement: float
    uncertainty: float


def smallest_delays(packets):
    """{(sender, receiver): the smallest apparent delay, µs}"""
    delays = {}
    for packet in packets:
        pair = (packet.sender, packet.receiver)
        delays[pair] = min(delays.get(pair, np.inf), packet.consumed - packet.sent)
    return delays


def pair_offsets(delays):
    """{(i, j): (o_j − o_i, round trip)}, i < j, in µs, of the pairs with packets both ways."""
    return {
        (i, j): ((delay - delays[j, i]) / 2, delay + delays[j, i])
        for (i, j), delay in delays.items()
        if i < j and (j, i) in delays
    }


def _reached(pairs, ranks):
    """The ranks that the pairs connect with rank 0."""
    reached, border = {0}, [0]
    while border:
        here = border.pop()
        for i, j in pairs:
            there = j if i == here else i if j == here else None
            if there is not None and there not in reached:
                reached.add(there)
                border.append(there)
    return sorted(reached & set(range(ranks)))


def _solved(usable, reached, ranks):
    """Offsets of all ranks by weighted least squares; 0 for rank 0 and for those that are not reached."""
    column = {rank: number for number, rank in enumerate(reached[1:])}
    matrix, right = np.zeros((len(usable), len(column))), np.zeros(len(usable))
    for row, (i, j, offset, round_trip) in enumerate(usable):
        weight = 1 / max(round_trip, 1.0)
        right[row] = weight * offset
        for rank, sign in ((i, -weight), (j, weight)):
            if rank:
                matrix[row, column[rank]] = sign
    offsets = np.zeros(ranks)
    if usable:
        offsets[reached[1:]] = np.linalg.lstsq(matrix, right, rcond=None)[0]
    return offsets


def align(packets, ranks):
    """Clocks of `ranks` ranks."""
    pairs = pair_offsets(smallest_delays(packets))
    reached = _reached(pairs, ranks)
    usable = [(i, j, *estimate) for (i, j), estimate in pairs.items() if i in reached]
    offsets = _solved(usable, reached, ranks)
    errors = [abs(offsets[j] - offsets[i] - offset) for i, j, offset, _ in usable]
    unknown = tuple(rank for rank in range(ranks) if rank not in reached)
    uncertainty = max((round_trip / 2 for *_, round_trip in usable), default=0.0)
    return Clocks(offsets, unknown, max(errors, default=0.0), uncertainty)


def of_one_host(traces):
    """Clocks of ranks that all run on one host, whose clock they tell; None if they do not."""
    if None in {trace.origin for trace in traces} or len({trace.host for trace in traces}) > 1:
        return None
    return Clocks(np.array([traces[0].origin - trace.origin for trace in traces]), (), 0.0, 0.0)


def backwards(packets, offsets):
    """How far every packet that seems to arrive before it was sent goes back, µs, on the aligned clocks."""
    taken = [(p.consumed - offsets[p.receiver]) - (p.sent - offsets[p.sender]) for p in packets]
    return [-delay for delay in taken if delay < 0]
