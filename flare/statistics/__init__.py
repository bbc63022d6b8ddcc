"""Tests, intervals and curves of NumPy arrays: no file, team or page is known here."""

ALPHA = 0.05
"""Largest p of a difference that is called significant."""

CONFIDENCE = 0.95
"""Share of the draws within an interval."""

DRAWS = 1000
"""The bootstrap draws cases this often."""

SEED = 2021
"""The seed of its generator."""
