"""One description of a certifiable network, as plain float64 arrays."""
