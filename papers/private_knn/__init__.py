"""Private-kNN: the paper's headline and figures."""
