"""What answering takes: a fitted system as files, and the one place where an answer meets a
ledger. No torch here.
"""

from reticent.bundles.bundle import Bundle

__all__ = ["Bundle"]
