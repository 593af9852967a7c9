"""Grids of runs: the file that describes one, making its runs, gathering what they reached."""
