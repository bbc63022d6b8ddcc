"""Runs containers: the interface, with the list of engines, and a file for each.

An engine is a file here, and a line in ``ENGINES`` of ``interface.py``; a flag of a
team's container is in ``create_words`` of ``flags.py``, with its reason.
"""
