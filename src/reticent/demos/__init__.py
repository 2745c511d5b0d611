"""The demonstrations behind ``reticent demo``, a folder for each system; none knows another, and
none knows the papers.
"""
