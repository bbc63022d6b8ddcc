"""Starts the evaluation within its container as the platform's own program does.

Runs in the image's Python, as root, with no other module of this package. It mirrors
rse-sagemaker-shim, which replaces the entrypoint of an image on grand-challenge.org:
/input becomes a symbolic link, variables of the platform are removed, memory is limited
for each process, and the image's own command runs as the image's own user.
"""

from __future__ import annotations

import grp
import json
import os
import pwd
import resource
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping
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

    start = time.monotonic()
    stdout, stderr = ((RESULT / name).open("wb") for name in ("stdout", "stderr"))
    process = subprocess.Popen(
        configuration["command"],
        stdout=stdout,
        stderr=stderr,
        cwd=configuration["folder"],
        env={**environment, "HOME": user.pw_dir},
        user=user.pw_uid,
        group=gid,
        extra_groups=[],
        start_new_session=True,
        preexec_fn=limit,
    )
    is_late = False
    try:
        process.wait(configuration["time_limit_s"])
    except subprocess.TimeoutExpired:
        is_late = True
        process.terminate()
        try:
            process.wait(GRACE_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
    usage = {
        "status": process.returncode,
        "seconds": time.monotonic() - start,
        "process_bytes": resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024,
        "is_late": is_late,
    }
    (RESULT / "usage.json").write_text(json.dumps(usage), encoding="utf-8")


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
