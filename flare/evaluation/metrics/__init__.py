"""DSC and NSD, exact and fast, on numpy arrays alone.

A metric is a function here, and a line in ``METRICS`` of
``flare/challenge/metrics.py``.
"""
