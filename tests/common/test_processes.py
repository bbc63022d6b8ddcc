"""Child processes that end with their parent, even when it is killed."""

import os
import signal
import subprocess
import sys

import pytest

from tests.builders import ROOT, wait_until

PARENT = """
import subprocess, sys
from flare.common.machine import end_with_parent

child = subprocess.Popen(["sleep", "600"], preexec_fn=end_with_parent())
print(child.pid, flush=True)
child.wait()
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux can do that")
def test_a_child_ends_with_a_parent_that_is_killed():
    with subprocess.Popen(
        [sys.executable, "-c", PARENT], stdout=subprocess.PIPE, cwd=ROOT
    ) as parent:
        child = int(parent.stdout.readline())
        os.kill(child, 0)

        parent.send_signal(signal.SIGKILL)

    def has_ended():
        try:
            state = (ROOT / f"/proc/{child}/stat").read_text().rpartition(")")[2]
        except (FileNotFoundError, ProcessLookupError):
            return True
        return state.split()[0] == "Z"

    wait_until(has_ended)
