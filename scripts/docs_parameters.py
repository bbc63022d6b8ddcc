"""Lets the tables of parameters have the types and defaults of the signature.

Else a type in braces is read as its values, of which the first is taken for the
default, and names that share a description all get what the first of them has.
"""

from __future__ import annotations

from typing import Any

from griffe import DocstringSectionParameters, Extension, Function


class SignatureTables(Extension):
    """Is called by griffe, which reads the docstrings, for each function."""

    def on_function_instance(self, *, func: Function, **_: Any) -> None:
        """Replace what was guessed."""
        for section in func.docstring.parsed if func.docstring else ():
            if isinstance(section, DocstringSectionParameters):
                for row in section.value:
                    if row.name in func.parameters:
                        own = func.parameters[row.name]
                        row.annotation, row.value = own.annotation, own.default
