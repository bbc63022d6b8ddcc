"""Finds what was submitted, and says what is wrong with it."""
