"""Renders a page as HTML: one file, which a browser opens without any other.

The policy of the page allows its own style and script by their digests, and nothing
else: no other script runs, and nothing is fetched, whatever a name holds.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from functools import lru_cache
from importlib import resources
from typing import TYPE_CHECKING

from flare.common.environment import __version__
from flare.common.text import isolated, printable, safe
from flare.reports.model import MANY_ROWS, Cell, Page, Raw, Table, Tips

if TYPE_CHECKING:
    from collections.abc import Mapping

    import jinja2
    from markupsafe import Markup

_SCRIPTS = ("sort.js", "tips.js", "marks.js", "print.js", "take.js")
"""The scripts of all pages."""

_ESCAPED = str.maketrans({"<": "\\u003c", ">": "\\u003e", "&": "\\u0026"})
"""Characters that could end a script, or begin a comment in it."""

_PARTS = re.compile(
    r"<(script|style|title)\b.*?</\1>|(?P<drawn><text\b.*?</text>)|<[^>]*>"
    r"|(?P<words>[^<]+)",
    re.DOTALL,
)
"""The parts of a page: scripts and the like, words in drawings, tags, other words."""


def page_html(page: Page, *scripts: str, style: str = "") -> str:
    """A page as HTML; all of its texts are escaped.

    Scripts are files of ``templates/``; they and the style come beside those of all
    pages.
    """
    from markupsafe import Markup

    style = _style() + style
    refresh = ("refresh.js",) if page.refresh_s else ()
    script = "".join(map(template_text, (*_SCRIPTS, *refresh, *scripts)))
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
    html = _environment().get_template("page.html").render(page=page, shell=shell)
    has_leftward = isolated(html) != html  # few pages have
    return _PARTS.sub(_isolated, html) if has_leftward else html


def _isolated(part: re.Match[str]) -> str:
    """A part of a page, in which names keep their direction to themselves.

    Drawings know no element for that, but characters; a tag has none of either.
    """
    if part["words"]:
        return isolated(part["words"], "<bdi>", "</bdi>")
    return isolated(part["drawn"]) if part["drawn"] else part[0]


def macro_html(macro: str, **content: object) -> Raw:
    """A part of the page of a case, made by a macro of ``templates/case.html``."""
    module = _environment().get_template("case.html").module
    return Raw(getattr(module, macro)(**content))


@lru_cache(maxsize=1)
def _environment() -> jinja2.Environment:
    """The template, in which everything is escaped, and every name has to be there."""
    import jinja2

    from flare.reports.render.svg import chart_svg

    environment = jinja2.Environment(
        autoescape=True,
        loader=jinja2.FunctionLoader(template_text),
        undefined=jinja2.StrictUndefined,
        finalize=lambda value: printable(value) if type(value) is str else value,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= {"short": safe, "printable": printable}
    environment.filters["svg"] = chart_svg
    environment.filters["rows"] = rows_html
    environment.filters["tips"] = dot_tips
    environment.filters["kind"] = lambda part: type(part).__name__
    environment.globals["many_rows"] = MANY_ROWS
    return environment


def rows_html(content: Table) -> Markup:
    """The rows of a table, by hand: a macro for each cell takes six times as long.

    Examples
    --------
    >>> from flare.reports.model import Column, table_of
    >>> columns = [Column("team", ["<b>"], is_text=True), Column("DSC", [0.9])]
    >>> print(rows_html(table_of("", columns)))
    <tr><th scope="row">&lt;b&gt;</th><td>0.9</td></tr>
    """
    from markupsafe import Markup

    rows = []
    for number, row in enumerate(content.rows):
        cells = list(map(_cell_html, row))
        cells[content.name_column] = _name_html(row[content.name_column])
        start = '<tr class="guest">' if number in content.quiet else "<tr>"
        rows.append(f"{start}{''.join(cells)}</tr>")
    return Markup("\n".join(rows))


def _name_html(cell: Cell) -> str:
    """The cell that names its row; where the name is shortened, with all of it."""
    name = safe(cell.text)
    title = "" if name == printable(cell.text) else _attribute("title", cell.text)
    return f'<th scope="row"{title}>{_inside(cell, name)}</th>'


def _cell_html(cell: Cell) -> str:
    if not (cell.exact or cell.mark or cell.href or cell.alarm or cell.note):
        return _plain_html(cell.text, cell.css)
    css, exact = _attribute("class", cell.css), _attribute("data-v", cell.exact)
    return f"<td{css}{exact}>{_inside(cell, cell.text)}</td>"


@lru_cache(maxsize=1 << 15)
def _plain_html(text: str, css: str) -> str:
    """A cell with nothing but a text, as most are."""
    return f"<td{_attribute('class', css)}>{_escaped(text)}</td>"


def _inside(cell: Cell, text: str) -> str:
    """The text of a cell, and what stands around it."""
    inside = _escaped(text)
    if cell.mark:
        from flare.reports.render.svg import mark_svg

        inside = f"{mark_svg(cell.mark)}<span>{inside}</span>"
    elif cell.href:
        place = _attribute("data-place", cell.place)
        inside = f"<a{_attribute('href', cell.href)}{place}>{inside}</a>"
    if cell.alarm:
        title = _attribute("title", cell.alarm)
        inside += f' <abbr class="alarm"{title}>!</abbr>'
    return f"{inside}<small>{_escaped(cell.note)}</small>" if cell.note else inside


@lru_cache(maxsize=1 << 10)
def _attribute(name: str, value: str) -> str:
    return f' {name}="{_escaped(value)}"' if value else ""


def _escaped(text: str) -> str:
    from markupsafe import escape

    return str(escape(printable(text)))


def dot_tips(tips: Tips) -> Markup:
    r"""The values of dots as JSON: a name for each column, a line for each row.

    Examples
    --------
    >>> print(dot_tips((["a", "<b>"], [[0.51234, None]], 3)))
    {"names":["a","\u003cb\u003e"],"rows":["0.512 -"]}
    """
    from markupsafe import Markup

    names, rows, decimals = tips
    lines, form = [], f"z.{decimals}f"
    for row in rows:
        texts = ["-" if value is None else format(value, form) for value in row]
        lines.append(" ".join(texts))
    content = {"names": list(map(safe, names)), "rows": lines}
    text = json.dumps(content, separators=(",", ":"), ensure_ascii=False)
    return Markup(text.translate(_ESCAPED))


def template_text(name: str) -> str:
    """A template, a style sheet or a script."""
    folder = resources.files("flare.reports.render") / "templates"
    return (folder / name).read_text(encoding="utf-8")


def _style() -> str:
    """The style sheet, with the colours of both palettes."""
    from flare.reports.render.style import DARK, GAINS, LIGHT, SHADES

    light, dark = _variables(LIGHT), _variables(DARK)
    classes = ""
    shades = [(f"s{n}", f"t{n}") for n in range(SHADES)]
    shades += [(f"g{n}", f"u{n}") for n in range(1, GAINS + 1)]
    for css, ink in shades:
        classes += f".{css}{{background:var(--{css});color:var(--{ink})}}"
        classes += f"svg .{css}{{fill:var(--{css})}}"
    return (
        f":root{{color-scheme:light dark;{light}}}\n"
        f"@media screen and (prefers-color-scheme:dark){{:root{{{dark}}}}}\n"
        f"{classes}\n{template_text('page.css')}"
    )


def _variables(palette: Mapping[str, str]) -> str:
    return ";".join(f"--{name}:{value}" for name, value in palette.items())


def _digest(text: str) -> str:
    digest = hashlib.sha256(text.encode("utf-8")).digest()
    return f"sha256-{base64.b64encode(digest).decode('ascii')}"
