"""Statistical lower bounds on epsilon: evidence for and against every claim."""
