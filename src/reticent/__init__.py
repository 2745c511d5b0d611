"""reticent: release what a neural network computed from private data, with a guarantee that can be proved."""

__version__ = "0.1.0"
