"""Says how to install a library that only an extra of pyproject.toml brings."""

from flare.common.places import is_checkout


def install_remedy(library: str, extra: str) -> str:
    """What to type where the program runs: in a checkout, or from an installed copy."""
    command = (
        f".venv/bin/pip install '.[{extra}]'"
        if is_checkout()
        else f"pip install {library}"
    )
    return f"Install it: {command}."
