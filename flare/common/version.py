"""Which version of the program this is, and of which commit."""

import os
from functools import cache

from flare.common.places import CHECKOUT

__version__ = "0.2.0"
"""Of this program: three numbers, as in the changelog."""


_TRIES = 3
"""So often git is asked again if something kills it."""


def source_commit() -> str:
    """Commit of the program's source, or "unknown".

    The image has it in FLARE_COMMIT; a checkout is asked through git, and says so if
    it has been changed since.
    """
    return os.environ.get("FLARE_COMMIT", "") or _commit_of_checkout()


@cache
def _commit_of_checkout() -> str:
    """What git says; asked once, as what is loaded stays what it was."""
    if not (CHECKOUT / ".git").exists():
        return "unknown"
    import subprocess  # not at the top: the image has no git, and starts sooner

    environment = {k: v for k, v in os.environ.items() if not k.startswith("GIT_")}
    command = ["git", "-C", str(CHECKOUT), "describe", "--always", "--abbrev=40"]
    for _ in range(_TRIES):
        try:
            run = subprocess.run(
                [*command, "--exclude=*", "--dirty=-changed"],
                env=environment,
                capture_output=True,
                text=True,
                check=False,
            )
        except OSError:
            return "unknown"
        if run.returncode >= 0:
            return run.stdout.strip() if run.returncode == 0 else "unknown"
    return "unknown"
