"""The demonstrations behind ``reticent demo``, a module for each system; none knows another, and
none knows the papers.
"""
