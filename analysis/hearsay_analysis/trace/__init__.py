"""Traces of a run: one Chrome trace a rank, each on its own clock, times in µs."""
