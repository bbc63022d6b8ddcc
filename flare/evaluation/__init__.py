"""Scores a submission against reference labels: all that the container needs."""
