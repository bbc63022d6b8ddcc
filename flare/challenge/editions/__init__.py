"""The challenge files that come with the program.

A file ``NAME.toml`` is all that the edition NAME needs: no list names it.
"""
