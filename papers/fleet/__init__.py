"""Fleets: what shuffled codes are worth, beside local release and a trusted curator."""
