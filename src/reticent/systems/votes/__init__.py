"""Votes of private records: noisy sums, and the classifiers that come out of them."""
