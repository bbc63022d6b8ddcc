"""Which version of the program this is, and of which commit."""

import os
import subprocess

from flare.common.places import CHECKOUT

__version__ = "0.2.0"
"""Of this program: three numbers, as in the changelog."""


def source_commit() -> str:
    """Commit of the program's source, or "unknown".

    The image has it in FLARE_COMMIT; a checkout is asked through git, and says so if
    it has been changed since.
    """
    commit = os.environ.get("FLARE_COMMIT", "")
    if commit or not (CHECKOUT / ".git").exists():
        return commit or "unknown"
    environment = {k: v for k, v in os.environ.items() if not k.startswith("GIT_")}

    command = ["git", "-C", str(CHECKOUT), "describe", "--always", "--abbrev=40"]
    try:
        run = subprocess.run(
            [*command, "--exclude=*", "--dirty=-changed"],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return run.stdout.strip()
