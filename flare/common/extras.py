"""Says how to install a library that only an extra of pyproject.toml brings."""

import sys
from pathlib import Path

from flare.common.places import is_checkout


def install_remedy(library: str, extra: str) -> str:
    """What to type where the program runs: in a checkout, by pipx, or by pip."""
    environment = Path(sys.prefix)
    if is_checkout():
        command = f".venv/bin/pip install '.[{extra}]'"
    elif (environment / "pipx_metadata.json").is_file():
        command = f"pipx inject {environment.name} {library}"
    else:
        command = f"pip install {library}"
    return f"Install it: {command}."
