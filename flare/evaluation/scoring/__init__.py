"""Applies the rules of a challenge to label maps: one case, then all of them.

A rule is a field of ``Challenge`` in ``flare/challenge/rules.py``, and is applied in
``case.py``.
"""
