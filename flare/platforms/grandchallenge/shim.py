"""Starts the evaluation within its container as the platform's own program does.

Runs in the image's Python, as root, with no other module of this package. It mirrors
rse-sagemaker-shim 0.8.3, which replaces the entrypoint of an image on
grand-challenge.org: /input becomes a symbolic link, variables of the platform are
removed, memory is limited for each process, and the image's own command runs as the
image's own user.
"""

from __future__ import annotations

import contextlib
import grp
import json
import os
import pwd
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

INPUT = Path("/opt/ml/input/data/rehearsal-input")
"""What /input leads to."""

RESULT = Path("/rehearsal/result")
"""Gets usage.json, and what the program alone wrote to stdout and stderr: a container
engine may write there as well."""

GRACE_S = 5
"""Seconds between SIGTERM and SIGKILL after the time limit."""

KILLED_PREFIX = "grand_challenge_"
"""Variables that begin like this, in any case, never reach the program."""


def main(configuration: Mapping[str, Any]) -> None:
    """Run the image's command, and note its outcome."""
    link = Path("/input")
    if link.is_dir() and not link.is_symlink():
        shutil.rmtree(link)
    link.symlink_to(INPUT)
    name, _, group = configuration["user"].partition(":")
    user = pwd.getpwuid(int(name)) if name.isdecimal() else pwd.getpwnam(name)
    gid = user.pw_gid
    if group:
        gid = int(group) if group.isdecimal() else grp.getgrnam(group).gr_gid
    environment = {
        key: value
        for key, value in os.environ.items()
        if not key.lower().startswith(KILLED_PREFIX)
    }
    memory = configuration["memory_bytes"]

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_DATA, (memory, memory))

    start = partial(
        subprocess.Popen,
        configuration["command"],
        cwd=configuration["folder"],
        env={**environment, "HOME": user.pw_dir},
        user=user.pw_uid,
        group=gid,
        extra_groups=os.getgrouplist(user.pw_name, gid),
        preexec_fn=limit,
    )
    usage, stdout, stderr = run(start, configuration["time_limit_s"])
    (RESULT / "stdout").write_bytes(stdout)
    (RESULT / "stderr").write_bytes(stderr)
    (RESULT / "usage.json").write_text(json.dumps(usage), encoding="utf-8")


def run(
    start: Callable[..., subprocess.Popen[Any]], time_limit_s: float
) -> tuple[dict[str, Any], bytes, bytes]:
    """Run a program until it has ended and both of its streams are closed.

    A child that goes on holds them open: then the time limit ends the run.
    """
    began = time.monotonic()
    pipe = subprocess.PIPE
    is_late = False
    with start(stdout=pipe, stderr=pipe, start_new_session=True) as process:
        try:
            stdout, stderr = process.communicate(timeout=time_limit_s)
        except subprocess.TimeoutExpired as error:
            is_late = True
            stdout, stderr = error.stdout or b"", error.stderr or b""
            _end(process)
    usage = {
        "status": process.returncode,
        "seconds": time.monotonic() - began,
        "process_bytes": resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024,
        "is_late": is_late,
    }
    return usage, stdout, stderr


def _end(process: subprocess.Popen[Any]) -> None:
    for number in (signal.SIGTERM, signal.SIGKILL):
        if process.poll() is None:
            os.killpg(process.pid, number)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(GRACE_S)


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
