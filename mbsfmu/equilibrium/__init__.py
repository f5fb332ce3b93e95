"""Static equilibrium: search, stability, infeasibility report."""
