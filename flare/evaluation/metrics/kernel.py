"""Finds the compiled kernel, and says how it is called.

``kernel.c`` beside this file was compiled if there was a C compiler when this package
was installed; `kernel_problem` tells. Without it, `flare.evaluation.metrics.plain`
counts the same, bit by bit, from arrays.
"""

from __future__ import annotations

import ctypes
import os
from ctypes import POINTER, Structure, c_int, c_int64, c_void_p
from functools import cache
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

import numpy as np
import numpy.typing as npt

VERSION = 193781712
"""Of the kernel that this file can call, as in ``kernel.c``."""

PLAIN = "FLARE_PLAIN"
"""The variable of the environment that chooses NumPy, if it is not empty."""


class KernelMap(Structure):
    """A packed label map."""

    _fields_ = (
        *(("items", c_void_p), ("starts", c_void_p), ("boxes", c_void_p)),
        *(("item_room", c_int64), ("row_room", c_int64)),
        *(("item_count", c_int64), ("row_count", c_int64)),
        *(("height", c_int64), ("width", c_int64)),
    )


class KernelList(Structure):
    """Memory for the surfels of one map."""

    _fields_ = (("surfels", c_void_p), ("room", c_int64), ("size", c_int64))


class KernelSearch(Structure):
    """The steps in which distances are measured, and the numbers of surfels."""

    _fields_ = (
        *(("steps", c_void_p), ("size", c_int64), ("distances", c_int64)),
        *(("look_ups", c_int64 * 2), ("counts", c_void_p)),
    )


@cache
def _library() -> ctypes.CDLL | str:
    """The compiled kernel, or why it is not used."""
    if os.environ.get(PLAIN):
        return f"{PLAIN} is set"
    files = (Path(__file__).with_name(f"_kernel{end}") for end in EXTENSION_SUFFIXES)
    file = next(filter(Path.exists, files), None)
    if not file:
        return "it was not compiled"
    try:
        library = ctypes.CDLL(str(file))
        version = library.kernel_version()
    except (OSError, AttributeError) as error:
        return f"it cannot be loaded ({error})"
    if version != VERSION:
        return f"it is of version {version}, expected {VERSION}"
    array, size, label_map = c_void_p, c_int64, POINTER(KernelMap)
    library.pack_rows.argtypes = (label_map, array, size)
    library.unpack_rows.argtypes = (label_map, size, size, array)
    library.words_needed.argtypes = (array, array, size, POINTER(KernelSearch))
    library.words_needed.restype = c_int64
    library.compare_labels.argtypes = [
        *(label_map, label_map, array, c_int, array),  # labels, box
        *(array, size, array, size),  # ball, memory
        *(array, array, POINTER(KernelList), POINTER(KernelSearch)),  # results
    ]
    return library


def kernel_problem() -> str:
    """Why the kernel is not used, in words of a sentence; empty if it is."""
    library = _library()
    return library if isinstance(library, str) else ""


def slow_text() -> str:
    """Return a sentence for where NumPy counts in place of the kernel, else nothing."""
    problem = kernel_problem()
    if not problem:
        return ""
    remedy = "sudo apt install gcc, and install this package anew"
    if os.environ.get(PLAIN):
        remedy = f"unset {PLAIN}"
    return (
        f"Metrics are counted by NumPy, more slowly: no compiled kernel, as {problem}."
        f" To have it: {remedy}."
    )


def kernel() -> ctypes.CDLL:
    """Return the compiled kernel, where there is no `kernel_problem`."""
    library = _library()
    assert not isinstance(library, str), library
    return library


def address(array: npt.NDArray[np.generic]) -> int:
    """Return where the kernel finds an array, which its caller has to keep alive."""
    return array.ctypes.data
