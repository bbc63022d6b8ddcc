"""Memory that is used again, seen by the pages that the kernel has to give."""

import platform
import subprocess
import sys

import pytest

from tests.builders import ROOT

PROGRAM = """
import resource
import sys
import numpy as np
from flare.common.machine import reuse_freed_memory

def pages_of_another_array():
    np.ones(8 << 20, np.uint8)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    np.ones(8 << 20, np.uint8)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

if sys.argv[1:]:
    reuse_freed_memory()
print(pages_of_another_array())
"""


@pytest.mark.skipif(
    platform.libc_ver()[0] != "glibc", reason="another library than glibc allocates"
)
def test_an_array_takes_the_pages_of_the_one_before():
    """With the setting of Dask's workers: 8 MiB are 128 pages or more of 64 KiB."""

    def pages(*words):
        run = subprocess.run(
            [sys.executable, "-c", PROGRAM, *words],
            env={"MALLOC_TRIM_THRESHOLD_": "65536", "PYTHONPATH": str(ROOT)},
            capture_output=True,
            check=True,
        )
        return int(run.stdout)

    assert pages() > 100
    assert pages("reuse") < 10
