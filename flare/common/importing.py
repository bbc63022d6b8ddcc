"""Imports modules without a search for garbage among them."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def importing() -> Iterator[None]:
    """Let imports go on without a search for garbage, of which they leave none.

    Later on, too, it is not looked for in what was imported, nor in workers. Altogether
    that would take longer than all that click does.
    """
    is_searched = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        if is_searched:
            gc.enable()
