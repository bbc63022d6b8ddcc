"""Says how much a ranking depends on its cases, its rules, and single results."""
