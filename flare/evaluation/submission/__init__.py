"""Finds what was submitted, and says what is wrong with it.

A kind of problem is a class in ``flare/evaluation/errors.py``, with its code.
"""
