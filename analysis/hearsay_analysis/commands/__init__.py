"""The subcommands of analysis/hearsay, a file each. They import what needs packages only when they run."""
