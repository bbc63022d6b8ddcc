"""Puts a page together: one file, which a browser opens without any other.

The policy of the page allows its own style and script by their digests, and nothing
else: no other script runs, and nothing is fetched, whatever a name holds.
"""

from __future__ import annotations

import base64
import hashlib
import importlib
from functools import lru_cache
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

from flare.common.errors import OutputError
from flare.common.installation import __version__, install_remedy
from flare.common.text import safe

if TYPE_CHECKING:
    import jinja2


def check_pages(file: Path) -> None:
    """See that the library which fills the pages is installed, before all else.

    Raises
    ------
    OutputError
        If Jinja2 is not installed; says how to install it here.
    """
    try:
        importlib.import_module("jinja2")
    except ModuleNotFoundError as error:
        remedy = install_remedy("Jinja2", "report")
        problem = f"{safe(file)}: it cannot be written, as Jinja2 is not installed"
        raise OutputError(problem, remedy) from error


def page_html(
    template: str, *more_scripts: str, own_style: str = "", **content: Any
) -> str:
    """A page as HTML.

    Parameters
    ----------
    template : str
        One of ``templates/``, which extends ``page.html``.
    *more_scripts : str
        Others of ``templates/``, beside that which sorts tables.
    own_style : str
        What is added to the style that all pages have.
    **content
        What it names; whatever is no `markupsafe.Markup` is escaped.
    """
    from markupsafe import Markup

    style = _style() + own_style
    script = "".join(map(template_text, ("sort.js", "tips.js", *more_scripts)))
    policy = (
        f"default-src 'none'; script-src '{_digest(script)}';"
        f" style-src '{_digest(style)}'; img-src data: blob:;"
        " base-uri 'none'; form-action 'none'"
    )
    shell = {
        "policy": policy,
        "style": Markup(style),
        "script": Markup(script),
        "version": __version__,
    }
    return _environment().get_template(template).render(**content, shell=shell)


@lru_cache(maxsize=1)
def _environment() -> jinja2.Environment:
    """Templates in which everything is escaped, and every name has to be there."""
    import jinja2

    return jinja2.Environment(
        autoescape=True,
        loader=jinja2.FunctionLoader(template_text),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )


def template_text(name: str) -> str:
    """A file of the templates."""
    folder = resources.files("flare.reports.pages") / "templates"
    return (folder / name).read_text(encoding="utf-8")


def _style() -> str:
    """The style sheet, with the colours of both palettes."""
    from flare.reports.pages.palette import DARK, LIGHT

    light, dark = (
        ";".join(f"--{name}:{value}" for name, value in palette.variables.items())
        for palette in (LIGHT, DARK)
    )
    shades = "".join(
        f".s{n}{{background:var(--s{n});color:var(--t{n})}}"
        f"svg .s{n}{{fill:var(--s{n})}}"
        for n in range(len(LIGHT.shades))
    )
    shades += "".join(
        f".g{n}{{background:var(--g{n});color:var(--u{n})}}"
        for n in range(1, len(LIGHT.gains) + 1)
    )
    return (
        f":root{{color-scheme:light dark;{light}}}\n"
        f"@media screen and (prefers-color-scheme:dark){{:root{{{dark}}}}}\n"
        f"{shades}\n{template_text('page.css')}"
    )


def _digest(text: str) -> str:
    """What a policy knows a text by."""
    found = hashlib.sha256(text.encode("utf-8")).digest()
    return f"sha256-{base64.b64encode(found).decode('ascii')}"
