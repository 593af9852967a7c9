"""What all figures share: looks, axes, files."""
