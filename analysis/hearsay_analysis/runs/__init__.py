"""Run folders as they lie on disk."""
