"""Finds what, done to label maps as a whole, has made their score low.

Data flows from ways in which a prediction may lie on the grid of its reference
(`repair`), to the DSC that each would give (`judge`), to the finding of a case and of
all cases (`diagnose`, `cases`), to sentences (`words`) and reports
(`report`).
"""
