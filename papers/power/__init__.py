"""Power encoder: the paper's tables and figures on four data sets."""
