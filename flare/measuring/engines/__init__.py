"""Runs containers: the interface, with the list of engines, and a file for each."""
