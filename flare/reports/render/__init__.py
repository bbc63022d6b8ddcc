"""Renders reports: pages as HTML, figures as files, tables as text."""

import importlib
from pathlib import Path

from flare.common.environment import install_remedy
from flare.common.errors import OutputError
from flare.common.text import safe
from flare.reports.render.style import quiet


def check_library(output: Path, module: str) -> None:
    """See that the library which fills a file is installed, before all else.

    That is ``jinja2`` for pages, or ``matplotlib`` for figures. An OutputError is
    raised if it is not installed; it says how to install it here.
    """
    try:
        with quiet():
            importlib.import_module(module)
    except ModuleNotFoundError as error:
        raise OutputError(
            f"{safe(output)}: it cannot be written, as {module} is not installed",
            install_remedy(module),
        ) from error
