"""DSC and NSD, exact and fast, on numpy arrays alone."""
