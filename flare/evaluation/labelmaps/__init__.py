"""Reads label maps, verified to the last byte, and compares their grids.

A format is a file here, and a line in ``FORMATS`` of ``flare/challenge/formats.py``.
"""
