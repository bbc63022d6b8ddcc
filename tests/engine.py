"""Images for tests, and the commands that work on them."""

import os
import subprocess
from contextlib import contextmanager

from tests.builders import ROOT

IMAGE = "flare-eval-test"


def call(*command, image=IMAGE, **options):
    return subprocess.run(
        [str(word) for word in command],
        cwd=ROOT,
        env={**os.environ, "FLARE_IMAGE": image},
        capture_output=True,
        check=False,
        **options,
    )


@contextmanager
def built(name, *arguments):
    """An image that build.sh makes, and that is removed afterwards."""
    run = call("./build.sh", *arguments, image=name)
    try:
        assert run.returncode == 0, (run.stdout + run.stderr).decode()[-3000:]
        yield name
    finally:
        call("docker", "image", "rm", "--force", name)
