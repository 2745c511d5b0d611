"""The demonstrations behind ``reticent demo``, a module for each system.

No demonstration imports another, and none imports the papers.
"""
