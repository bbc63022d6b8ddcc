"""Applies the rules of a challenge to label maps: one case, then all of them."""
