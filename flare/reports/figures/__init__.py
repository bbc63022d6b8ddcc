"""Figures for papers, each with the numbers behind it."""
