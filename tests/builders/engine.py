"""Images for tests, and the commands that work on them."""

import os
import subprocess
from contextlib import contextmanager

from tests.builders import ROOT
from tests.builders.alone import alone

IMAGE = f"flare-eval-test-{os.getpid()}"
"""Of this run of the tests: others may run on the same engine."""

LOCAL_BASE = ("--no-pull", "--base", "python:3.13-slim")
"""For build.sh: the base image that is here already; tests ask no registry."""


def call(*command, image=IMAGE, **options):
    return subprocess.run(
        [str(word) for word in command],
        cwd=ROOT,
        env={**os.environ, "FLARE_IMAGE": image},
        capture_output=True,
        check=False,
        **options,
    )


def build(name, *arguments):
    with alone("disk"):
        return call("./build.sh", *LOCAL_BASE, *arguments, image=name)


@contextmanager
def built(name, *arguments):
    """An image that build.sh makes, and that is removed afterwards."""
    run = build(name, *arguments)
    try:
        assert run.returncode == 0, (run.stdout + run.stderr).decode()[-3000:]
        yield name
    finally:
        with alone("disk"):
            call("docker", "image", "rm", "--force", name)
