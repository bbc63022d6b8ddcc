"""Scores the predictions of all teams, each case only once."""
