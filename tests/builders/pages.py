"""What a page holds, read back from its HTML; and results to make pages of."""

import json
from html.parser import HTMLParser
from itertools import chain

import pytest

from flare.ranking.rules import RankingOptions
from flare.reports.comparison import read_comparison
from flare.reports.comparison_page import comparison_page
from flare.reports.model import Pair
from flare.reports.ranking_pages import ranking_pages
from flare.reports.render.html import page_html
from flare.reports.report import Report
from flare.results.scores import statistics

HOSTILE = (
    "<script>document.title='ran'</script>",
    "<img src=x onerror=document.title='ran'>",
    "\"><svg onload=document.title='ran'>",
    "' onmouseover='document.title=1",
    "</title><script>document.title='ran'</script>",
    "</style><script>document.title='ran'</script>",
    "{{ 7 * 7 }}",
    "{% raw %}",
    "&lt;b&gt;&#60;",
    "javascript:document.title='ran'",
    "a\u202egnp.exe",
    "nul\0in it",
    "half \udc80 of a character",
    "line\nbreak\r\ttab",
    "\u2028separator",
    "e\u0301\u0301\u0301\u0301",
    "\u0627\u0644\u0639\u0631\u0628",
    "x" * 5000,
    "<!--",
    "]]>",
    "\\u003cscript\\u003e",
)
"""Names that break pages which are put together carelessly."""


def metrics_content(scores, failed=None, cases=None, **more):
    """A metrics.json from scores by organ: a DSC for each case; the NSD is its half."""
    columns = {f"dsc_{organ}": own for organ, own in scores.items()}
    columns |= {f"nsd_{organ}": [v / 2 for v in own] for organ, own in scores.items()}
    for kind in ("dsc", "nsd"):
        rows = zip(*(columns[f"{kind}_{organ}"] for organ in scores), strict=True)
        columns[kind] = [sum(row) / len(row) for row in rows]
    return content_of_columns(columns, cases, failed=failed or {}, **more)


def content_of_columns(columns, cases=None, **more):
    """A metrics.json from the values of all cases by metric."""
    count = len(next(iter(columns.values())))
    cases = cases or [f"case_{number:03}" for number in range(1, count + 1)]
    files = numbered([f"{case}.nii.gz" for case in cases])
    case = {name: numbered(values) for name, values in columns.items()}
    evaluation = {"challenge": "flare21", "version": "0.2.0", "rules": {}}
    return {
        "case": case | {"alg_fname": {**files}, "gt_fname": {**files}},
        "aggregates": {
            f"{name}_{which}": value
            for name, values in columns.items()
            for which, value in statistics(values).items()
        },
        "evaluation": evaluation | {"options": {}},
        "failed": {},
        "warnings": [],
    } | more


def numbered(values):
    return {str(number): value for number, value in enumerate(values)}


def write_json(file, content):
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(content))
    return file


BOTH = pytest.mark.parametrize(
    "is_organiser", [True, False], ids=["organiser", "participant"]
)


def compared(folder, *contents, is_organiser=True):
    sources = [
        write_json(folder / name / "metrics.json", content)
        for name, content in zip(("old", "new", "next"), contents, strict=False)
    ]
    return comparison_page(read_comparison(sources, is_organiser=is_organiser))


def compare(folder, *contents, **audience):
    return page_html(compared(folder, *contents, **audience))


def parts_of(page, section=None):
    """What the sections of a page's content hold; of one section, if it is named."""
    shown = [own for own in page.shown if section in (None, own.id)]
    return [
        own
        for part in chain.from_iterable(each.parts for each in shown)
        for own in (part.charts if isinstance(part, Pair) else (part,))
    ]


def rows_of(table):
    """The cells of a table's rows, by their heads."""
    rows = ([Cell(c.text, c.exact or None, c) for c in row] for row in table.rows)
    return [dict(zip(table.heads, row, strict=True)) for row in rows]


def content_of(page, start):
    """The rows of the table of a page's content whose caption begins so."""
    tables = (getattr(own, "table", None) or own for own in parts_of(page))
    found = (own for own in tables if getattr(own, "caption", "").startswith(start))
    (table,) = found
    return rows_of(table)


class Page(HTMLParser):
    """A page: its tables, and all of its elements and text."""

    def __init__(self, html):
        super().__init__(convert_charrefs=True)
        self.tables, self.elements, self.text = {}, [], ""
        self._cell = None
        self._caption = None
        self.feed(html)

    def handle_starttag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))
        if tag == "table":
            self._rows = []
        elif tag == "caption":
            self._caption = ""
        elif tag == "tr":
            self._rows.append([])
        elif tag in ("td", "th"):
            self._cell = ""
            self._exact = dict(attributes).get("data-v")

    def handle_data(self, data):
        self.text += data
        if self._cell is not None:
            self._cell += data
        elif self._caption is not None:
            self._caption += data

    def handle_endtag(self, tag):
        if tag == "caption":
            self._name, self._caption = self._caption, None
        elif tag in ("td", "th"):
            self._rows[-1].append(Cell(self._cell, self._exact))
            self._cell = None
        elif tag == "table":
            self.tables[self._name] = self._rows

    def table(self, start):
        """The rows of the table whose caption begins so, each by its heads."""
        (rows,) = (rows for name, rows in self.tables.items() if name.startswith(start))
        heads, *rest = rows
        return [dict(zip(heads, row, strict=True)) for row in rest]


class Cell(str):
    """The text of a cell, its value in full precision, and all else of its content."""

    def __new__(cls, text, exact, content=None):
        found = super().__new__(cls, text)
        found.exact = None if exact is None else float(exact)
        found.content = content
        return found

    def __getattr__(self, name):
        return getattr(self.content, name)


def write_report(sources, output, *, is_organiser, **options):
    """Write the pages of sources; the one to open."""
    audience = "organiser" if is_organiser else "participant"
    report = Report(sources=tuple(sources), output=output, audience=audience, **options)
    return report.write()


def pages_of_ranking(
    source, *, is_organiser, has_teams=True, is_written=False, **options
):
    """The pages of results that are ranked, by the names of their files."""
    options = RankingOptions(**({"bootstrap": 0} | options))
    audience = {"is_organiser": is_organiser, "has_teams": has_teams}
    return dict(ranking_pages(source, options, is_written=is_written, **audience))
