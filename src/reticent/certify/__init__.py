"""Everything that yields a sound number: upper bounds on local Lipschitz constants, and radii."""
