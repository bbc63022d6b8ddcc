"""Lets this process use freed memory again, whatever its environment says."""

from __future__ import annotations

import ctypes

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
"""What ``mallopt`` calls them: M_TRIM_THRESHOLD and M_MMAP_THRESHOLD of malloc.h."""

LARGEST_KEPT_BYTES = 32 * 2**20
"""Where glibc's own adjustment ends on a computer of 64 bits (mallopt(3))."""


def reuse_freed_memory() -> None:
    """Set glibc's thresholds to where it would take them itself.

    glibc's own adjustment still gives back to the kernel, at the end of each case, what
    the next one needs: for a small one, that was a quarter of its time. Dask starts
    workers with ``MALLOC_TRIM_THRESHOLD_=65536``, which ends the adjustment too: there,
    scoring a case took three times as long. Nothing is done where another library than
    glibc allocates.
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):  # musl, macOS, Windows
        return
    mallopt(_MMAP_THRESHOLD, LARGEST_KEPT_BYTES)
    mallopt(_TRIM_THRESHOLD, 2 * LARGEST_KEPT_BYTES)
