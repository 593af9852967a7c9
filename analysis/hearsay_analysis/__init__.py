"""The program analysis/hearsay: it makes runs of sweeps, reads run folders, draws, assembles pages."""
